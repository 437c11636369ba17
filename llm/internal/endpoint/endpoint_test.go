package endpoint

import (
	"io"
	"net/http"
	"strings"
	"testing"
)

type transport func(*http.Request) (*http.Response, error)

func (f transport) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// A connection that the server had closed is tried again with the same body.
func TestABodyCanBeSentAgain(t *testing.T) {
	pieces := [][]byte{[]byte("ab"), nil, []byte("c"), []byte("def")}
	e, err := New(Options{Name: "p", BaseURL: "http://h/", Transport: transport(func(r *http.Request) (*http.Response, error) {
		for i := range 2 {
			body, err := io.ReadAll(r.Body)
			if string(body) != "abcdef" || err != nil || r.ContentLength != 6 {
				t.Errorf("try %d: %q of %d bytes, %v", i, body, r.ContentLength, err)
			}
			if r.Body, err = r.GetBody(); err != nil {
				t.Fatal(err)
			}
		}
		return &http.Response{StatusCode: 200, Header: http.Header{"Content-Type": {"text/event-stream"}}, Body: io.NopCloser(strings.NewReader("x"))}, nil
	})})
	if err != nil {
		t.Fatal(err)
	}
	c := e.Call(t.Context(), "m")
	defer c.End()
	a, failure := c.Post("/x", pieces)
	if failure != nil || !a.Stream || a.Status != 200 {
		t.Fatalf("%+v, %v", a, failure)
	}
	if string(pieces[0]) != "ab" || string(pieces[3]) != "def" {
		t.Errorf("the pieces were changed: %q", pieces)
	}
}

func TestTheSuffixOfAnAddressIsLeftOut(t *testing.T) {
	for in, want := range map[string]string{
		"https://h": "https://h", "https://h/": "https://h", "https://h/v1": "https://h", "https://h/v1/": "https://h", "https://h/proxy/v1": "https://h/proxy", "https://h/v1beta": "https://h/v1beta",
	} {
		e, err := New(Options{Name: "p", BaseURL: in, Suffix: "/v1"})
		if err != nil || e.base.String() != want {
			t.Errorf("%s: %v, %v, want %s", in, e.base, err, want)
		}
	}
}

// An answer that is no stream is bounded too.
func TestAnAnswerWithoutEndIsRefused(t *testing.T) {
	r := &endless{text: strings.Repeat("{", 16<<10)}
	e, _ := New(Options{Name: "p", BaseURL: "http://h", Transport: transport(func(*http.Request) (*http.Response, error) {
		return &http.Response{StatusCode: 200, Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(r)}, nil
	})})
	c := e.Call(t.Context(), "")
	defer c.End()
	if _, failure := c.Get("/models"); failure == nil || failure.Message != "p: sent an answer over 16 MiB" || r.read > 2*MaxAnswer {
		t.Errorf("%v after %d bytes", failure, r.read)
	}
}
