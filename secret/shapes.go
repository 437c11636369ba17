package secret

import (
	"encoding/base64"
	"strings"
)

// shape is a key that can be told by how it begins.
type shape struct {
	prefix string
	kind   Kind
	least  int // characters behind the prefix, at least
	exact  bool
	ok     func(byte) bool
	also   func(body string) bool // nil: nothing more
}

func word(c byte) bool      { return isAlnum(c) || c == '_' || c == '-' }
func dotted(c byte) bool    { return word(c) || c == '.' }
func upperWord(c byte) bool { return isUpper(c) || isDigit(c) }

// random is for prefixes that may begin a word of a language: the body has a
// digit and a long part without a hyphen.
func random(body string) bool {
	longest, at := 0, 0
	digit := false
	for i := 0; i <= len(body); i++ {
		if i == len(body) || body[i] == '-' {
			longest, at = max(longest, i-at), i+1
			continue
		}
		digit = digit || isDigit(body[i])
	}
	return digit && longest >= 16
}

// shapes by their first byte.
var shapes = func() (by [256][]shape) {
	for _, s := range []shape{
		{prefix: "sk-ant-", kind: APIKey, least: 20, ok: word},
		{prefix: "sk-proj-", kind: APIKey, least: 20, ok: word},
		{prefix: "sk-svcacct-", kind: APIKey, least: 20, ok: word},
		{prefix: "sk-or-", kind: APIKey, least: 20, ok: word},
		{prefix: "sk-", kind: APIKey, least: 20, ok: word, also: random},
		{prefix: "gsk_", kind: APIKey, least: 32, ok: isAlnum},
		{prefix: "xai-", kind: APIKey, least: 32, ok: isAlnum},
		{prefix: "pplx-", kind: APIKey, least: 32, ok: isAlnum},
		{prefix: "nvapi-", kind: APIKey, least: 32, ok: word},
		{prefix: "hf_", kind: APIKey, least: 30, ok: isAlnum},
		{prefix: "r8_", kind: APIKey, least: 32, ok: isAlnum},
		{prefix: "tvly-", kind: APIKey, least: 20, ok: word, also: random},
		{prefix: "lin_api_", kind: APIKey, least: 32, ok: isAlnum},
		{prefix: "sk_live_", kind: APIKey, least: 16, ok: isAlnum},
		{prefix: "sk_test_", kind: APIKey, least: 16, ok: isAlnum},
		{prefix: "rk_live_", kind: APIKey, least: 16, ok: isAlnum},
		{prefix: "rk_test_", kind: APIKey, least: 16, ok: isAlnum},
		{prefix: "whsec_", kind: APIKey, least: 24, ok: isAlnum},
		{prefix: "SG.", kind: APIKey, least: 40, ok: dotted},
		{prefix: "AIza", kind: APIKey, least: 35, exact: true, ok: word},

		{prefix: "ghp_", kind: Token, least: 30, ok: isAlnum},
		{prefix: "gho_", kind: Token, least: 30, ok: isAlnum},
		{prefix: "ghu_", kind: Token, least: 30, ok: isAlnum},
		{prefix: "ghs_", kind: Token, least: 30, ok: isAlnum},
		{prefix: "ghr_", kind: Token, least: 30, ok: isAlnum},
		{prefix: "github_pat_", kind: Token, least: 36, ok: word},
		{prefix: "glpat-", kind: Token, least: 20, ok: dotted},
		{prefix: "xoxb-", kind: Token, least: 10, ok: word},
		{prefix: "xoxp-", kind: Token, least: 10, ok: word},
		{prefix: "xoxa-", kind: Token, least: 10, ok: word},
		{prefix: "xoxr-", kind: Token, least: 10, ok: word},
		{prefix: "xoxs-", kind: Token, least: 10, ok: word},
		{prefix: "xoxe-", kind: Token, least: 10, ok: word},
		{prefix: "xoxe.", kind: Token, least: 10, ok: dotted},
		{prefix: "xapp-", kind: Token, least: 10, ok: word, also: random},
		{prefix: "npm_", kind: Token, least: 36, exact: true, ok: isAlnum},
		{prefix: "pypi-", kind: Token, least: 50, ok: word},
		{prefix: "dckr_pat_", kind: Token, least: 20, ok: word},
		{prefix: "glsa_", kind: Token, least: 32, ok: word},
		{prefix: "hvs.", kind: Token, least: 24, ok: word},
		{prefix: "ya29.", kind: Token, least: 20, ok: word},

		{prefix: "AKIA", kind: CloudKey, least: 16, exact: true, ok: upperWord},
		{prefix: "ASIA", kind: CloudKey, least: 16, exact: true, ok: upperWord},
		{prefix: "dop_v1_", kind: CloudKey, least: 64, exact: true, ok: isHex},
		{prefix: "shpat_", kind: CloudKey, least: 32, exact: true, ok: isHex},
		{prefix: "AGE-SECRET-KEY-1", kind: PrivateKey, least: 40, ok: upperWord},
	} {
		by[s.prefix[0]] = append(by[s.prefix[0]], s)
	}
	return by
}()

// longestKey bounds the run that a shape looks at.
const longestKey = 4096

// words looks at every word of the text once.
func (f *finder) words() {
	t := f.text
	done := 0 // behind the last key
	for i := 0; i < len(t); i++ {
		if i < done || !isAlnum(t[i]) || !begins(t, i) {
			continue
		}
		end := f.keyAt(i)
		if end == 0 {
			end = f.jwtAt(i)
		}
		if end == 0 {
			end = f.credentialAt(i)
		}
		done = max(done, end)
	}
	f.entropy()
}

// keyAt is the end of the key that begins at i, 0 when there is none.
func (f *finder) keyAt(i int) int {
	for _, s := range shapes[f.text[i]] {
		if !strings.HasPrefix(f.text[i:], s.prefix) {
			continue
		}
		from := i + len(s.prefix)
		limit := min(len(f.text), from+longestKey)
		end := run(f.text[:limit], from, s.ok)
		body := strings.TrimRight(f.text[from:end], ".")
		if len(body) < s.least || s.exact && len(body) != s.least || s.also != nil && !s.also(body) {
			continue
		}
		f.add(i, from+len(body), s.kind)
		return from + len(body)
	}
	return 0
}

// jwtAt finds header.payload.signature; both of the first are JSON objects in
// base64, which begin with eyJ.
func (f *finder) jwtAt(i int) int {
	t := f.text
	if !strings.HasPrefix(t[i:], "eyJ") {
		return 0
	}
	head := run(t, i, word)
	if head-i < 12 || head >= len(t) || t[head] != '.' || !strings.HasPrefix(t[head+1:], "eyJ") {
		return 0
	}
	body := run(t, head+1, word)
	if body >= len(t) || t[body] != '.' {
		return 0
	}
	end := run(t, body+1, word)
	f.add(i, end, JWT)
	return end
}

// credentialAt finds what stands behind Bearer and Basic.
func (f *finder) credentialAt(i int) int {
	t := f.text
	const longest = len("bearer")
	if i+longest >= len(t) {
		return 0
	}
	is := func(name string) bool {
		return strings.EqualFold(t[i:i+len(name)], name) && (t[i+len(name)] == ' ' || t[i+len(name)] == '\t')
	}
	value := func(c byte) bool { return word(c) || c == '.' || c == '~' || c == '+' || c == '/' || c == '=' }
	switch {
	case is("bearer"):
		from := run(t, i+len("bearer"), func(c byte) bool { return c == ' ' || c == '\t' })
		end := run(t[:min(len(t), from+longestKey)], from, value)
		if v := t[from:end]; len(v) >= 16 && strings.ContainsAny(v, "0123456789") {
			f.add(from, end, Credential)
			return end
		}
	case is("basic"):
		from := i + len("basic") + 1
		end := run(t[:min(len(t), from+longestKey)], from, value)
		v := strings.TrimRight(t[from:end], "=")
		if b, err := base64.RawStdEncoding.DecodeString(v); err == nil && len(v) >= 8 && strings.Contains(string(b), ":") && printable(b) {
			f.add(from, end, Credential)
			return end
		}
	}
	return 0
}

func printable(b []byte) bool {
	for _, c := range b {
		if c < 0x20 || c > 0x7e {
			return false
		}
	}
	return true
}

// pem finds private keys from BEGIN to END, or, without an END, as far as
// their text goes.
func (f *finder) pem() {
	const begin, end, dashes = "-----BEGIN ", "-----END ", "-----"
	t := f.text
	nextEnd := -1 // the first END at or behind where it was looked for; len(t): none
	for at := 0; ; {
		i := strings.Index(t[at:], begin)
		if i < 0 {
			return
		}
		i += at
		at = i + len(begin)
		label := t[at:min(len(t), at+40)]
		n := strings.Index(label, dashes)
		if n < 0 || !strings.HasSuffix(label[:n], "PRIVATE KEY") && !strings.HasSuffix(label[:n], "PRIVATE KEY BLOCK") {
			continue
		}
		body := at + n + len(dashes)
		if nextEnd < body {
			if nextEnd = strings.Index(t[body:], end); nextEnd < 0 {
				nextEnd = len(t)
			} else {
				nextEnd += body
			}
		}
		stop := keyLines(t, body)
		if nextEnd < len(t) && (nextEnd <= stop || !strings.Contains(t[body:nextEnd], begin)) {
			stop = nextEnd + len(end)
			if n := strings.Index(t[stop:min(len(t), stop+40)], dashes); n >= 0 {
				stop += n + len(dashes)
			}
		}
		if stop > body {
			f.add(i, stop, PrivateKey)
			at = stop
		}
	}
}

// keyLines is the end of the lines of a key that lost its END: white space,
// also as escapes, and words of base64 that are long enough to be lines.
func keyLines(t string, at int) int {
	end := at
	for {
		i := at
		for i < len(t) && (t[i] == ' ' || t[i] == '\n' || t[i] == '\r' || t[i] == '\t' || t[i] == '\\' && i+1 < len(t) && (t[i+1] == 'n' || t[i+1] == 'r')) {
			if t[i] == '\\' {
				i++
			}
			i++
		}
		at = run(t, i, func(c byte) bool { return isAlnum(c) || c == '+' || c == '/' || c == '=' })
		if at-i < 16 {
			return end
		}
		end = at
	}
}

// urls finds the password in scheme://user:password@host.
func (f *finder) urls() {
	t := f.text
	for at := 0; ; {
		i := strings.Index(t[at:], "://")
		if i < 0 {
			return
		}
		at += i + 3
		user := t[at:min(len(t), at+512)]
		if n := strings.IndexAny(user, "/?# \t\r\n\"'`<>\\"); n >= 0 {
			user = user[:n]
		}
		host := strings.LastIndexByte(user, '@')
		if host < 0 {
			continue
		}
		colon := strings.IndexByte(user[:host], ':')
		if colon < 0 || colon+1 == host || placeholder(user[colon+1:host]) {
			continue
		}
		f.add(at+colon+1, at+host, Password)
	}
}
