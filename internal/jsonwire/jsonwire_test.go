package jsonwire

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
)

// library is what the JSON library says of a text, as leniently as we read.
func library(b []byte) bool {
	d := jsontext.NewDecoder(bytes.NewReader(b), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	if _, err := d.ReadValue(); err != nil {
		return false
	}
	_, err := d.ReadToken()
	return err != nil && err.Error() == "EOF"
}

func FuzzValidAgreesWithTheLibrary(f *testing.F) {
	for _, s := range []string{
		`{}`, `[]`, `{"a":[1,-0,1.5e+3,"x\u00e9\ud83d"],"b":{"c":null}}`, ` [ true , false ] `, `"\x"`, `01`, `1.`, `-`, `{"a":1,}`, `[1,]`,
		"\"\x01\"", "\"\xff\"", `{"a" 1}`, `nul`, `[[[[`, `{"a":1}x`, `1e`, `"abc`, "\"12345678\\n12345678\"",
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		if len(b) > 1<<16 {
			return
		}
		err := Valid(b)
		if (err == nil) != library(b) {
			t.Fatalf("Valid(%q) = %v, the library says %v", b, err, library(b))
		}
		if Strict(b) == nil && err != nil {
			t.Fatalf("Strict accepts %q: %v", b, err)
		}
		if err != nil {
			return
		}
		// Walking valid text ends where the text ends.
		if end := Space(b, Skip(b, 0)); end != len(b) {
			t.Fatalf("Skip(%q) = %d", b, end)
		}
		if !Equal(b, b) && !bytes.ContainsAny(b, "0123456789") {
			t.Fatalf("%q is not equal to itself", b)
		}
		if s, ok := Text(b); ok {
			back := AppendString(nil, s)
			if again, _ := Text(back); again != strings.ToValidUTF8(s, "\ufffd") && again != s && Strict(b) == nil {
				t.Fatalf("%q decodes to %q, which is written as %q", b, s, back)
			}
		}
		_ = Lossless(b)
	})
}

func TestDepthIsBounded(t *testing.T) {
	deep := func(n int) []byte { return []byte(strings.Repeat("[", n) + strings.Repeat("]", n)) }
	if err := Valid(deep(MaxReadDepth)); err != nil {
		t.Fatal(err)
	}
	if err := Valid(deep(MaxReadDepth + 2)); !errors.Is(err, ErrDepth) {
		t.Fatalf("got %v", err)
	}
	if err := Strict(deep(MaxWriteDepth)); err != nil {
		t.Fatal(err)
	}
	if err := Strict(deep(MaxWriteDepth + 2)); !errors.Is(err, ErrDepth) {
		t.Fatalf("got %v", err)
	}
	if err := Valid([]byte(strings.Repeat(`{"a":`, 1_000_000))); !errors.Is(err, ErrDepth) {
		t.Fatalf("got %v", err)
	}
}

func TestStrictRefusesWhatMustNotBeWritten(t *testing.T) {
	for _, c := range []struct {
		text string
		ok   bool
	}{
		{`{"a":1,"b":2}`, true},
		{`{"a":1,"a":2}`, false},
		{`{"a":1,"\u0061":2}`, false},
		{`{"a":{"b":1,"b":1}}`, false},
		{`{"k0":0,"k1":0,"k2":0,"k3":0,"k4":0,"k5":0,"k6":0,"k7":0,"k8":0,"k9":0,"ka":0,"kb":0,"kc":0,"kd":0}`, true},
		{`{"k0":0,"k1":0,"k2":0,"k3":0,"k4":0,"k5":0,"k6":0,"k7":0,"k8":0,"k9":0,"ka":0,"kb":0,"kc":0,"k3":0}`, false},
		{`-0`, false}, {`-0.0`, false}, {`0`, true}, {`-1`, true}, {`1e999`, false}, {`12345678901234567890`, true},
		{`"\ud83d"`, true}, {"\"\xff\"", false}, {"\"\xed\xa0\xbd\"", false}, {"\"é\"", true},
	} {
		if err := Strict([]byte(c.text)); (err == nil) != c.ok {
			t.Errorf("Strict(%q) = %v, want ok %v", c.text, err, c.ok)
		}
	}
}

func TestLoneSurrogatesSurvive(t *testing.T) {
	for _, tok := range []string{`"\ud83d"`, `"a\udc00b"`, `"\ud83d\ude00"`, `"\u0000"`, `"\b\f\n\r\t\"\\"`, `"  "`, `"<&>"`} {
		s, ok := Text([]byte(tok))
		if !ok {
			t.Fatalf("%s is no text", tok)
		}
		back := string(AppendString(nil, s))
		again, _ := Text([]byte(back))
		if again != s {
			t.Errorf("%s -> %q -> %s", tok, s, back)
		}
	}
	if got := string(AppendString(nil, "\xed\xa0\xbd x \xff")); got != `"\ud83d x `+"\ufffd"+`"` {
		t.Errorf("got %s", got)
	}
}

func TestIntReadsNumbersAsJavaScriptDoes(t *testing.T) {
	for _, c := range []struct {
		tok  string
		n    int64
		safe bool
	}{
		{"0", 0, true}, {"-0", 0, true}, {"7.0", 7, true}, {"1e3", 1000, true}, {"7.5", 0, false},
		{"9007199254740991", MaxSafe, true}, {"9007199254740992", 0, false}, {"-9007199254740991", -MaxSafe, true},
		{"1e300", 0, false}, {"123456789012345", 123456789012345, true}, {`"1"`, 0, false}, {"", 0, false}, {"-", 0, false},
	} {
		n, ok := Int([]byte(c.tok))
		if ok != c.safe || ok && n != c.n {
			t.Errorf("Int(%s) = %d, %v", c.tok, n, ok)
		}
	}
	for n := int64(-5); n < 1<<50; n += 1 + max(n, 0)/3 {
		if got, _ := Int(AppendInt(nil, n)); got != n {
			t.Fatalf("%d is written as %s", n, AppendInt(nil, n))
		}
	}
}

func TestEqualExceptLeavesOutOnePath(t *testing.T) {
	for _, c := range []struct {
		a, b string
		path []string
		want bool
	}{
		{`{"a":1,"b":[1,{"c":2}]}`, `{"b":[1.0,{"c":2}],"a":1e0}`, nil, true},
		{`{"a":1}`, `{"a":1,"b":null}`, nil, false},
		{`{"a":1,"a":2}`, `{"a":2}`, nil, true},
		{`{"a":{"b":1},"c":2}`, `{"a":{"b":9},"c":2}`, []string{"a", "b"}, true},
		{`{"a":{"b":1},"c":2}`, `{"a":{"b":9},"c":3}`, []string{"a", "b"}, false},
		{`{"a":[{"x":1}]}`, `{"a":[{"x":2}]}`, []string{"a", "0", "x"}, true},
		{`{"a":[{"x":1},5]}`, `{"a":[{"x":2},6]}`, []string{"a", "0", "x"}, false},
		{`"\u0041"`, `"A"`, nil, true},
		{`true`, `false`, nil, false},
	} {
		if got := EqualExcept([]byte(c.a), []byte(c.b), c.path...); got != c.want {
			t.Errorf("EqualExcept(%s, %s, %v) = %v", c.a, c.b, c.path, got)
		}
	}
}

func TestMembersAndElementsGiveSpans(t *testing.T) {
	obj := []byte(` { "a" : [1, "x,]", {}] , "\u0062":{"c":"}"} , "a":null } `)
	if err := Valid(obj); err != nil {
		t.Fatal(err)
	}
	if got := string(Get(obj, "a")); got != "null" {
		t.Errorf("the last of two members counts, got %s", got)
	}
	if got := string(Get(obj, "b")); got != `{"c":"}"}` {
		t.Errorf("got %s", got)
	}
	var got []string
	for v := range Elements([]byte(`[1, "x,]" ,{}]`)) {
		got = append(got, string(v))
	}
	if strings.Join(got, "|") != `1|"x,]"|{}` {
		t.Errorf("got %q", got)
	}
	for range Elements([]byte(`[ ]`)) {
		t.Error("an empty array has no elements")
	}
}

// The floor for everything that reads logs: one lenient pass of the library.
func BenchmarkValue(b *testing.B) {
	var buf bytes.Buffer
	for i := range 20_000 {
		buf.WriteString(`{"type":"assistant/chunk","seq":4,"time":1700000000005,"data":{"turn":2,"step":1,"chunk":{"type":"text-delta","index":0,"text":" token of"}}}` + "\n")
		if i%24 == 0 {
			buf.WriteString(`{"type":"tool/result","seq":5,"time":1700000000005,"data":{"turn":1,"step":1,"message":{"content":[{"type":"text","text":"` + strings.Repeat("some output text\\n", 40) + `"}],"id":"x"}}}` + "\n")
		}
	}
	text := buf.Bytes()
	b.Run("floor=library", func(b *testing.B) {
		b.SetBytes(int64(len(text)))
		for b.Loop() {
			d := jsontext.NewDecoder(bytes.NewBuffer(text), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
			for {
				if _, err := d.ReadValue(); err != nil {
					break
				}
			}
		}
	})
	b.Run("ours", func(b *testing.B) {
		b.SetBytes(int64(len(text)))
		for b.Loop() {
			for i := 0; i < len(text)-1; {
				var err error
				if i, err = Value(text, i); err != nil {
					b.Fatal(err)
				}
			}
		}
	})
}
