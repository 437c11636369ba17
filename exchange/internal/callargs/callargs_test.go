package callargs

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/outcrop-dev/outcrop/internal/jsonwire"
)

func TestArgumentsBecomeAnObject(t *testing.T) {
	for _, c := range []struct {
		text, want string
		mended     bool
	}{
		{"", "{}", false}, {" ", "{}", false}, {`{"a":1}`, `{"a":1}`, false}, {" {} ", " {} ", false},
		{`{"a":`, `{"input":"{\"a\":"}`, true}, {"[1]", `{"input":"[1]"}`, true}, {"ls -l", `{"input":"ls -l"}`, true},
	} {
		if got, mended := Object(c.text); got != c.want || mended != c.mended {
			t.Errorf("%q gives %s, %v; want %s", c.text, got, mended, c.want)
		}
	}
	for _, c := range []struct {
		value, want string
		mended      bool
	}{
		{"", "{}", false}, {"null", "{}", false}, {`{ "a" : 1 }`, `{"a":1}`, false}, {`"{\"a\":1}"`, `{"a":1}`, false}, {`"x"`, `{"input":"x"}`, true}, {"[1, 2]", `{"input":"[1,2]"}`, true}, {"7", `{"input":"7"}`, true},
	} {
		if got, mended := OfValue([]byte(c.value)); got != c.want || mended != c.mended {
			t.Errorf("%s gives %s, %v; want %s", c.value, got, mended, c.want)
		}
	}
}

func TestAnyTextBecomesAnObject(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		text := rapid.String().Draw(r, "text")
		got, mended := Object(text)
		if jsonwire.Valid([]byte(got)) != nil || jsonwire.Kind([]byte(got)) != '{' {
			r.Fatalf("%q gives %q", text, got)
		}
		if in, _ := jsonwire.Text(jsonwire.Get([]byte(got), "input")); mended && in != text {
			r.Fatalf("%q gives %q, which holds %q", text, got, in)
		}
	})
}
