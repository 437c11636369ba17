package jetstream

import (
	"fmt"
	"net"
	"net/url"
	"strings"

	"github.com/outcrop-dev/outcrop"
)

// Address names a realm: the servers of a cluster, and one of the realms that
// their account has.
type Address struct {
	Scheme  string   // nats, or tls where a connection without TLS is refused
	Servers []string // HOST:PORT each
	Name    string
}

const (
	defaultPort = "4222"
	// maxName is how long the name of a realm may be: names of streams, which
	// it is a part of, are names of folders on the servers.
	maxName = 64
)

// ParseAddress reads nats://HOST[:PORT][,HOST[:PORT]...]/NAME, or the same with
// tls. A name of a realm has letters, digits, - and _. Who may come in is no part
// of an address, which is written into logs and shown to people: a user name or a
// password in it is refused. The error wraps outcrop.ErrRefused.
func ParseAddress(text string) (Address, error) {
	refused := func(format string, args ...any) (Address, error) {
		return Address{}, &outcrop.Error{Op: "open", Seq: -1, Offset: -1, Err: outcrop.ErrRefused,
			Msg: "the address of a realm: " + fmt.Sprintf(format, args...), Hint: "write nats://HOST[:PORT][,HOST[:PORT]...]/NAME"}
	}
	scheme, rest, ok := strings.Cut(text, "://")
	if !ok || scheme != "nats" && scheme != "tls" {
		return refused("it begins with nats:// or tls://")
	}
	hosts, name, _ := strings.Cut(rest, "/")
	if strings.Contains(hosts, "@") {
		return refused("it names no user and no password: use a credentials file")
	}
	a := Address{Scheme: scheme, Name: name}
	for h := range strings.SplitSeq(hosts, ",") {
		u, err := url.Parse("nats://" + strings.TrimSpace(h))
		if err != nil || u.Hostname() == "" || u.Path != "" || u.RawQuery != "" || u.Fragment != "" {
			return refused("%q is no HOST:PORT", h)
		}
		port := u.Port()
		if port == "" {
			port = defaultPort
		}
		a.Servers = append(a.Servers, net.JoinHostPort(u.Hostname(), port))
	}
	switch {
	case name == "":
		return refused("the name of the realm is missing")
	case len(name) > maxName:
		return refused("a name has at most %d characters", maxName)
	}
	for _, c := range []byte(name) {
		if !plainByte(c) {
			return refused("a name has letters, digits, - and _; %q is none of them", c)
		}
	}
	return a, nil
}

// String is the address as ParseAddress reads it.
func (a Address) String() string {
	return a.Scheme + "://" + strings.Join(a.Servers, ",") + "/" + a.Name
}

// urls is what the client dials.
func (a Address) urls() string {
	var b strings.Builder
	for i, s := range a.Servers {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(a.Scheme + "://" + s)
	}
	return b.String()
}

// plainByte reports what stands for itself in a token of a subject.
func plainByte(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '-' || c == '_'
}

const upperHex = "0123456789ABCDEF"

// token is the token of a subject that stands for a session id: letters, digits,
// - and _ as they are, every other byte as = and two hexadecimal digits.
func token(id string) string {
	plain := true
	for i := range len(id) {
		plain = plain && plainByte(id[i])
	}
	if plain {
		return id
	}
	b := make([]byte, 0, len(id)+16)
	for i := range len(id) {
		if c := id[i]; plainByte(c) {
			b = append(b, c)
		} else {
			b = append(b, '=', upperHex[c>>4], upperHex[c&15])
		}
	}
	return string(b)
}

// untoken is the id that a token stands for. There is one token for each id.
func untoken(t string) (id string, ok bool) {
	b := make([]byte, 0, len(t))
	for i := 0; i < len(t); i++ {
		switch c := t[i]; {
		case plainByte(c):
			b = append(b, c)
		case c == '=' && i+2 < len(t):
			hi, lo := strings.IndexByte(upperHex, t[i+1]), strings.IndexByte(upperHex, t[i+2])
			if hi < 0 || lo < 0 || plainByte(byte(hi<<4|lo)) {
				return "", false
			}
			b = append(b, byte(hi<<4|lo))
			i += 2
		default:
			return "", false
		}
	}
	return string(b), len(b) > 0
}
