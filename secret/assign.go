package secret

import "strings"

// nameClass says how much a name promises that its value is secret.
type nameClass uint8

const (
	plainName    nameClass = iota
	keyName                // key, token: the value must look like one
	passwordName           // a password may be a word
)

const (
	longestName  = 64
	longestValue = 512
)

// classOf judges a name by its last words: API_KEY, clientSecret, db.password.
func classOf(name string) nameClass {
	name = strings.TrimRight(name, "0123456789_-.")
	last, rest := lastWord(name)
	before, _ := lastWord(rest)
	switch last {
	case "password", "passwd", "pwd", "passphrase", "passcode":
		return passwordName
	case "pass":
		if before != "" && before != "by" && before != "first" && before != "second" {
			return passwordName
		}
	case "secret", "apikey", "secretkey", "accesskey", "privatekey", "authkey", "credential", "authtoken", "accesstoken":
		return keyName
	case "token":
		switch before {
		case "max", "min", "num", "input", "output", "total", "cache", "cached", "reasoning", "prompt", "completion",
			"eos", "bos", "pad", "unk", "sep", "cls", "special", "next", "page", "first", "last", "current", "stop", "start", "end", "per":
			return plainName
		}
		return keyName
	case "key":
		switch before {
		case "api", "access", "secret", "private", "signing", "encryption", "auth", "account", "master", "shared", "service", "license":
			return keyName
		}
	}
	return plainName
}

// lastWord splits the last word off a name, in lower case: words end at _ - .
// and where a capital follows a small letter.
func lastWord(name string) (word, rest string) {
	name = strings.TrimRight(name, "_-.")
	i := len(name)
	for i > 0 {
		c := name[i-1]
		if c == '_' || c == '-' || c == '.' {
			break
		}
		if i < len(name) && isUpper(name[i]) && !isUpper(c) {
			break
		}
		i--
	}
	return strings.ToLower(name[i:]), name[:i]
}

func nameByte(c byte) bool { return isAlnum(c) || c == '_' || c == '-' || c == '.' }

// assignments finds NAME=VALUE, NAME: VALUE, "NAME": "VALUE" and their kind.
func (f *finder) assignments() {
	t := f.text
	for i := 0; i < len(t); i++ {
		if t[i] != '=' && t[i] != ':' {
			continue
		}
		name, spaced := nameBefore(t, i)
		class := classOf(name)
		if name == "" || class == plainName {
			continue
		}
		at := i + 1
		if at < len(t) && (t[at] == '=' || t[at] == '>') { // := and =>
			if t[i] == '=' && t[at] == '=' { // a comparison
				continue
			}
			at++
		}
		value := run(t, at, func(c byte) bool { return c == ' ' || c == '\t' })
		env := t[i] == '=' && !spaced && value == at && strings.ToUpper(name) == name
		if end := f.value(value, class, env); end > 0 {
			i = end - 1
		}
	}
}

// nameBefore is the name that ends before i, and whether there is space between.
func nameBefore(t string, i int) (name string, spaced bool) {
	end := i
	for end > 0 && i-end < 4 && (t[end-1] == ' ' || t[end-1] == '\t') {
		end--
	}
	spaced = end < i
	if end > 0 && (t[end-1] == '"' || t[end-1] == '\'') {
		if end--; end > 0 && t[end-1] == '\\' {
			end--
		}
	}
	from := end
	for from > 0 && end-from < longestName && nameByte(t[from-1]) {
		from--
	}
	return strings.TrimLeft(t[from:end], "-."), spaced
}

// flags finds --password VALUE.
func (f *finder) flags() {
	t := f.text
	for at := 0; ; {
		i := strings.Index(t[at:], "--")
		if i < 0 {
			return
		}
		from := at + i + 2
		at = run(t[:min(len(t), from+longestName)], from, nameByte)
		if at == from || at >= len(t) || t[at] != ' ' {
			at = max(at, from)
			continue
		}
		if class := classOf(t[from:at]); class != plainName {
			if end := f.value(at+1, class, false); end > 0 {
				at = end
			}
		}
	}
}

// value judges the value that begins at i and returns its end, 0 when it is
// nothing secret.
func (f *finder) value(i int, class nameClass, env bool) int {
	t := f.text
	if i >= len(t) {
		return 0
	}
	quote, from := byte(0), i
	if t[from] == '\\' && from+1 < len(t) && t[from+1] == '"' { // JSON inside a string
		from++
	}
	if c := t[from]; c == '"' || c == '\'' || c == '`' {
		quote = c
		from++
	} else {
		from = i
	}
	limit := min(len(t), from+longestValue)
	end := from
	for end < limit && !endsValue(t[end], quote) {
		end++
	}
	if quote != 0 && (end == limit || t[end] != quote && t[end] != '\\') {
		return 0 // a quote that does not close here
	}
	v := t[from:end]
	if quote == 0 {
		v = strings.TrimRight(v, ".,;:!?")
	}
	if !secretValue(v, class, quote != 0, env) {
		return 0
	}
	kind := Assigned
	if class == passwordName {
		kind = Password
	}
	f.add(from, from+len(v), kind)
	return from + len(v)
}

// bareEnds are the bytes that end a value without quotes. The & is for queries
// of URLs.
var bareEnds = func() (ends [256]bool) {
	for c := range 0x20 {
		ends[c] = true
	}
	for _, c := range []byte(" \"'`,;()[]{}<>|&\\") {
		ends[c] = true
	}
	return ends
}()

func endsValue(c, quote byte) bool {
	if quote == 0 {
		return bareEnds[c]
	}
	return c == quote || c == '\\' || c < 0x20
}

// secretValue tells a value from the name of one, a type, a placeholder and
// prose.
func secretValue(v string, class nameClass, quoted, env bool) bool {
	if len(v) < 4 || !quoted && !env && len(v) < 6 || placeholder(v) {
		return false
	}
	if strings.ContainsAny(v, " \t") || strings.Contains(v, "://") || v[0] == '/' || strings.HasPrefix(v, "./") || strings.HasPrefix(v, "~/") {
		return false
	}
	digit, lower, upper := false, false, false
	for i := range len(v) {
		digit = digit || isDigit(v[i])
		lower = lower || isLower(v[i])
		upper = upper || isUpper(v[i])
	}
	letters := lower || upper
	switch {
	case env:
		return class == passwordName || digit || len(v) >= 8
	case classOf(v) != plainName: // config.apiKey
		return false
	case class == passwordName && quoted:
		return true
	case class == passwordName:
		return digit
	}
	return digit && letters && len(v) >= 8 || lower && upper && len(v) >= 20
}

// placeholder reports a value that stands for one.
func placeholder(v string) bool {
	switch v[0] {
	case '$':
		// A variable; passwords begin with it too.
		if len(v) == 1 || v[1] == '{' || v[1] == '(' || isUpper(v[1]) || v[1] == '$' {
			return true
		}
	case '<', '{', '*', '%', '[':
		return true
	}
	if strings.HasPrefix(v, "...") || strings.Trim(v, v[:1]) == "" {
		return true
	}
	switch strings.ToLower(v) {
	case "true", "false", "null", "none", "undefined", "string", "bytes", "required", "optional", "number", "boolean",
		"password", "passwd", "secret", "token", "redacted", "masked", "hidden", "changeme", "example", "value", "text":
		return true
	}
	l := strings.ToLower(v)
	return strings.HasPrefix(l, "your") || strings.HasPrefix(l, "xxxx") || strings.HasPrefix(l, "process.env") || strings.HasPrefix(l, "os.environ")
}
