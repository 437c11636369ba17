package secret

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// Keys are put together here, so that no scanner takes this file for a leak.
const (
	a20 = "aB3dE5gH7jK9mN1pQ2rS"
	a36 = a20 + "4tU6vW8xY0zA1bC2"
	a40 = a20 + "4tU6vW8xY0zA1bC2dE4f"
	pem = "-----BEGIN RSA " + "PRIVATE KEY-----\nMIIEpAIBAAKCAQEA7bq1\nqwertyuiopasdfghjkl=\n-----END RSA PRIVATE KEY-----"
	jwt = "eyJhbGciOiJIUzI1NiJ9." + "eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N"
)

func TestWhatIsSecretIsMaskedAndTheRestStays(t *testing.T) {
	for _, c := range []struct{ name, text, want string }{
		{"a key of a model's provider", "key sk-" + a40 + ", ok", "key [masked:api-key], ok"},
		{"one that names its product", "sk-ant-api03-" + a40, "[masked:api-key]"},
		{"a key at the end of a sentence", "It is sk-proj-" + a40 + ".", "It is [masked:api-key]."},
		{"a key behind an escaped line break", `{"text":"\nsk-` + a40 + `"}`, `{"text":"\n[masked:api-key]"}`},
		{"a token of a code host", "ghp_" + a36, "[masked:token]"},
		{"a fine grained one", "github_pat_" + a40, "[masked:token]"},
		{"a key of a cloud", "AKIA" + "IOSFODNN7EXAMPLE", "[masked:cloud-key]"},
		{"a key of maps", "AIza" + a36[:35], "[masked:api-key]"},
		{"a token of a chat", "xoxb-" + "123456789012-abcdefGHIJ", "[masked:token]"},
		{"a key of a payment service", "sk_live_" + a20, "[masked:api-key]"},
		{"a private key", "a\n" + pem + "\nb", "a\n[masked:private-key]\nb"},
		{"a private key without an end", strings.Split(pem, "\n-----END")[0] + "\nand then he said", "[masked:private-key]\nand then he said"},
		{"a private key in JSON", strings.ReplaceAll(pem, "\n", `\n`), "[masked:private-key]"},
		{"a JSON Web Token", "token " + jwt + " is it", "token [masked:jwt] is it"},
		{"a header", "Authorization: Bearer " + a40, "Authorization: Bearer [masked:credential]"},
		{"a header in a command", `curl -H "authorization: bearer abc123def456ghi789"`, `curl -H "authorization: bearer [masked:credential]"`},
		{"basic credentials", "Authorization: Basic dXNlcjpwYXNzd29yZA==", "Authorization: Basic [masked:credential]"},
		{"a password in a URL", "postgres://app:s3cr3t@db.example.com:5432/x", "postgres://app:[masked:password]@db.example.com:5432/x"},
		{"a password with an at sign", "https://u:p@ss@example.com/a@b", "https://u:[masked:password]@example.com/a@b"},
		{"an environment file", "DB_PASSWORD=hunter2\nNAME=x", "DB_PASSWORD=[masked:password]\nNAME=x"},
		{"an exported token", "export API_TOKEN=abc123xyz", "export API_TOKEN=[masked:secret]"},
		{"a quoted value", `SECRET_KEY='django-insecure-1a2b3c'`, `SECRET_KEY='[masked:secret]'`},
		{"a member of JSON", `{"password": "correcthorse", "user": "me"}`, `{"password": "[masked:password]", "user": "me"}`},
		{"JSON inside a string of JSON", `"{\"api_key\": \"k3y-abcdef12\"}"`, `"{\"api_key\": \"[masked:secret]\"}"`},
		{"a name in camel case", `clientSecret: "a1b2c3d4e5"`, `clientSecret: "[masked:secret]"`},
		{"a flag", "mysql --password hunter2 -u me", "mysql --password [masked:password] -u me"},
		{"a flag with an equals sign", "x --auth-token=q1w2e3r4t5", "x --auth-token=[masked:secret]"},
		{"YAML", "db:\n  password: hunter2\n", "db:\n  password: [masked:password]\n"},
		{"a query of a URL", "https://x.example/?access_token=q1w2e3r4t5&a=1", "https://x.example/?access_token=[masked:secret]&a=1"},
		{"a random word", "the value " + a40 + " stands there", "the value [masked:high-entropy] stands there"},
		{"two in one line", "ghp_" + a36 + " ghp_" + a36, "[masked:token] [masked:token]"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got, n := Mask(c.text); got != c.want || n == 0 {
				t.Errorf("%d places\ngot  %s\nwant %s", n, got, c.want)
			}
		})
	}
}

func TestWhatIsNoSecretStays(t *testing.T) {
	image := strings.Repeat("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJ", 8)
	lines := strings.Repeat("aB3dE5gH7jK9mN1pQ2rS4tU6vW8xY0zA1bC2dE4faB3dE5gH7jK9mN1pQ2rS4tU6\n", 3) + "vW8xY0zA1bC2dE4faB3dE5gH7jK9==\n"
	for name, text := range map[string]string{
		"a commit":                      "commit e760d17f0a1b2c3d4e5f60718293a4b5c6d7e8f9",
		"a digest":                      "sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
		"a UUID":                        "123e4567-e89b-12d3-a456-426614174000",
		"a ULID":                        "01ARZ3NDEKTSV4RRFFQ69G5FAV",
		"an image":                      "data:image/png;base64," + image,
		"a file in lines of base64":     lines,
		"a line of go.sum":              "github.com/a/b v1.2.3 h1:aB3dE5gH7jK9mN1pQ2rS4tU6vW8xY0zA1bC2dE4fgH0=",
		"an integrity of npm":           `"integrity": "sha512-aB3dE5gH7jK9mN1pQ2rS4tU6vW8xY0zA1bC2dE4fgH0aB3dE5gH7jK9mN1pQ2rS4tU6vW8xY0zA1bC2dE4fgH0A=="`,
		"a fingerprint":                 "SHA256:aB3dE5gH7jK9mN1pQ2rS4tU6vW8xY0zA1bC2dE4fgH0",
		"the id of a tool call":         "toolu_01A09q90qw90lq917835lq9XyZ",
		"another one":                   "call_aB3dE5gH7jK9mN1pQ2rS4tU6",
		"the id of a reply":             "chatcmpl-aB3dE5gH7jK9mN1pQ2rS4tU6",
		"a path":                        "src/Components2/ButtonGroup/IndexPage3/Main.tsx",
		"a long name":                   "getUserByIdAndNameOrThrowNotFoundException",
		"a test's name":                 "TestParseHTTP2FrameHeaderWithPadding16AndMore",
		"a word that begins like a key": "sk-learn-pipeline-estimator-with-long-name",
		"a variable":                    "PASSWORD=$DB_PASSWORD and API_KEY=${KEY}",
		"a placeholder":                 `api_key = "<your-api-key>" password: "********"`,
		"code that asks for it":         `token := os.Getenv("TOKEN"); password = getpass.getpass()`,
		"code that hands it on":         "password: config.dbPassword, token=args.token",
		"a type":                        "password: string; token?: string",
		"numbers of tokens":             `{"max_tokens": 4096, "inputTokens": 12345678, "token": 17}`,
		"a count in text":               `"completion_token": "abc12345"`,
		"a comparison":                  `if password == "hunter2" {`,
		"prose":                         "The password: it was never written down. Secret: none.",
		"a label":                       `"password": "Enter your password here"`,
		"a path of a secret":            `"secret": "/run/secrets/db1"`,
		"bearer of news":                "bearer authenticationmiddleware",
		"a URL without a password":      "https://user@example.com/a:b@c",
		"a mask":                        "PASSWORD=[masked:password] https://u:[masked:password]@h",
		"a certificate":                 "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----",
	} {
		t.Run(name, func(t *testing.T) {
			if got, n := Mask(text); n != 0 {
				t.Errorf("%d places: %s", n, got)
			}
		})
	}
}

// Nine in ten random words of the lengths of keys are found.
func TestMostRandomWordsAreFound(t *testing.T) {
	const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
	r := rand.New(rand.NewPCG(1, 2))
	for _, n := range []int{32, 40, 64} {
		found := 0
		for range 1000 {
			b := make([]byte, n)
			for i := range b {
				b[i] = letters[r.IntN(len(letters))]
			}
			if len(Find(string(b)+" end")) > 0 {
				found++
			}
		}
		if found < 900 {
			t.Errorf("%d of 1000 words of %d characters", found, n)
		}
	}
}

func TestSpansAreInOrderAndMaskingEnds(t *testing.T) {
	pieces := []string{"sk-", "ghp_", a20, a40, pem, jwt, "password", "token", "_key", "=", ": ", "\"", "\\\"", "\n", " ", "--", "://", "@", "u:", "Bearer ", "Basic ", "eyJ", ".", "$", "<", "é", "\xff", "/", "[masked:"}
	rapid.Check(t, func(rt *rapid.T) {
		check(rt, strings.Join(rapid.SliceOf(rapid.SampledFrom(pieces)).Draw(rt, "pieces"), ""))
	})
}

type failer interface{ Fatalf(string, ...any) }

func check(t failer, text string) {
	at := 0
	for _, s := range Find(text) {
		if s.Start < at || s.End <= s.Start || s.End > len(text) || s.Kind == "" {
			t.Fatalf("span %+v behind %d in %q", s, at, text)
		}
		at = s.End
	}
	masked, _ := Mask(text)
	if again, n := Mask(masked); n != 0 || again != masked {
		t.Fatalf("%q is masked again: %q", masked, again)
	}
}

func TestJSONIsMaskedStringByString(t *testing.T) {
	in := `{"password" : "hunter two", "p\u0061ssword":"hunter2","n":1.0,"list":["ghp_` + a36 + `","x",{"token":"q1w2e3r4t5"}],"\ud83d":"\ud83d"}`
	want := `{"password" : "hunter two", "p\u0061ssword":"[masked:password]","n":1.0,"list":["[masked:token]","x",{"token":"[masked:secret]"}],"\ud83d":"\ud83d"}`
	got, n := MaskJSON([]byte(in))
	if d := cmp.Diff(want, string(got)); d != "" || n != 3 {
		t.Errorf("%d places (-want +got):\n%s", n, d)
	}
	for _, plain := range []string{`{ "a" : [ 1 ] }`, `[]`, ` {} `, `{"a":{},"b":[[],{"c":null}]}`, `"x"`, `1`} {
		if got, n := MaskJSON([]byte(plain)); n != 0 || string(got) != plain {
			t.Errorf("%s: %d places: %s", plain, n, got)
		}
	}
	// What is no JSON, or only its beginning, is masked as text.
	for _, text := range []string{"", "[", "{", `{"a"`, `{"a":`, `{"a":[1,`, `[1}`, `["ghp_` + a36, `{"token" "q1w2e3r4t5"}`, `{1:2}`, `[1]x`, `[,]`} {
		want, wantN := Mask(text)
		if got, n := MaskJSON([]byte(text)); string(got) != want || n != wantN {
			t.Errorf("%s: %d places: %s", text, n, got)
		}
	}
}

func TestDeepJSONIsMasked(t *testing.T) {
	const levels = 200_000
	open, shut := strings.Repeat(`[{"a":`, levels), strings.Repeat(`}]`, levels)
	got, n := MaskJSON([]byte(open + `"ghp_` + a36 + `"` + shut))
	if n != 1 || string(got) != open+`"[masked:token]"`+shut {
		t.Errorf("%d places, %d bytes", n, len(got))
	}
}

// The time grows with the text, however deep it is.
func BenchmarkMaskJSON(b *testing.B) {
	for _, levels := range []int{1, 1_000, 100_000} {
		text := []byte("[" + strings.TrimSuffix(strings.Repeat(strings.Repeat(`[`, levels)+`"a word"`+strings.Repeat(`]`, levels)+",", 200_000/levels), ",") + "]")
		b.Run(fmt.Sprintf("%d deep", levels), func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				MaskJSON(text)
			}
		})
	}
}

func FuzzMask(f *testing.F) {
	for _, s := range []string{"", "sk-" + a40, pem, jwt, `{"password":"hunter2"}`, "--token q1w2e3r4", "https://u:p4ss@h", "Basic dXNlcjpwYXNzd29yZA=="} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		check(t, text)
		if json.Valid([]byte(text)) {
			if got, _ := MaskJSON([]byte(text)); !json.Valid(got) {
				t.Fatalf("%q becomes %q", text, got)
			}
		}
	})
}

// The time grows with the text and not faster, on text that is made to be slow.
func BenchmarkFind(b *testing.B) {
	for name, piece := range map[string]string{
		"prose": "The quick brown fox jumps over the lazy dog; see docs/format.md for the rest.\n",
		"keys":  "sk-sk-sk-", "begins": "-----BEGIN PRIVATE KEY-----", "tokens": "eyJaaaaaaaaaaaa.", "names": "token=token=",
		"addresses": "://u:", "flags": "--token ",
	} {
		for _, size := range []int{1 << 16, 1 << 20} {
			text := strings.Repeat(piece, size/len(piece))
			b.Run(name+"/"+map[int]string{1 << 16: "64kB", 1 << 20: "1MB"}[size], func(b *testing.B) {
				b.SetBytes(int64(len(text)))
				for b.Loop() {
					Find(text)
				}
			})
		}
	}
}
