package cli_test

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"github.com/outcrop-dev/outcrop/internal/conformance"
)

// block is the first block of docs/operations.md in a language behind a text.
func block(t *testing.T, behind, language string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(conformance.Dir(), "..", "docs", "operations.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, ok := strings.Cut(string(text), behind)
	if ok {
		_, rest, ok = strings.Cut(rest, "```"+language+"\n")
	}
	if ok {
		rest, _, ok = strings.Cut(rest, "```")
	}
	if !ok {
		t.Fatalf("docs/operations.md has no %s block behind %q", language, behind)
	}
	return rest
}

// certificates writes what the page calls ca.pem, server.pem and server.key.
func certificates(t *testing.T, dir string) {
	t.Helper()
	// A validity around any clock that a test may run under.
	from, to := time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC), time.Date(2120, 1, 1, 0, 0, 0, 0, time.UTC)
	key := func() *ecdsa.PrivateKey {
		k, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		if err != nil {
			t.Fatal(err)
		}
		return k
	}
	write := func(name, kind string, b []byte) {
		if err := os.WriteFile(filepath.Join(dir, name), pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: b}), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	caKey, serverKey := key(), key()
	ca := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test CA"}, NotBefore: from, NotAfter: to,
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign}
	der, err := x509.CreateCertificate(rand.Reader, ca, ca, &caKey.PublicKey, caKey)
	if err != nil {
		t.Fatal(err)
	}
	write("ca.pem", "CERTIFICATE", der)
	leaf := &x509.Certificate{SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: "servers"}, NotBefore: from, NotAfter: to,
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}}
	if der, err = x509.CreateCertificate(rand.Reader, leaf, ca, &serverKey.PublicKey, caKey); err != nil {
		t.Fatal(err)
	}
	write("server.pem", "CERTIFICATE", der)
	b, err := x509.MarshalPKCS8PrivateKey(serverKey)
	if err != nil {
		t.Fatal(err)
	}
	write("server.key", "PRIVATE KEY", b)
}

// documentedServers are the three servers of docs/operations.md, on this machine;
// it returns their addresses.
func documentedServers(t *testing.T, dir string) []string {
	t.Helper()
	certificates(t, dir)
	conf, accounts := block(t, "`/etc/nats/nats-server.conf`", "conf"), block(t, "`/etc/nats/accounts.conf`", "conf")
	if err := os.WriteFile(filepath.Join(dir, "accounts.conf"), []byte(accounts), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, user := range []string{"TEAM_OWNER", "TEAM_WORKER", "TEAM_READER", "OTHERS", "SYS"} {
		t.Setenv(user+"_PASSWORD", "secret-of-"+user)
	}
	ports := freePorts(t, 6)
	change := []string{"/etc/nats/", filepath.ToSlash(dir) + "/"}
	for i := range 3 {
		change = append(change, fmt.Sprintf("n%d.example.com:6222", i+1), "127.0.0.1:"+strconv.Itoa(ports[3+i]))
	}
	var addresses, files []string
	for i := range 3 {
		here := append(change, "server_name: n1", fmt.Sprintf("server_name: n%d", i+1), "/var/lib/nats", filepath.ToSlash(filepath.Join(dir, strconv.Itoa(i))),
			"0.0.0.0:4222", "127.0.0.1:"+strconv.Itoa(ports[i]), "0.0.0.0:6222", "127.0.0.1:"+strconv.Itoa(ports[3+i]))
		file := filepath.Join(dir, fmt.Sprintf("n%d.conf", i+1))
		if err := os.WriteFile(file, []byte(strings.NewReplacer(here...).Replace(conf)), 0o600); err != nil {
			t.Fatal(err)
		}
		files, addresses = append(files, file), append(addresses, "127.0.0.1:"+strconv.Itoa(ports[i]))
	}
	for _, file := range files {
		o, err := server.ProcessConfigFile(file)
		if err != nil {
			t.Fatal(err)
		}
		o.NoLog, o.NoSigs = true, true
		s, err := server.NewServer(o)
		if err != nil {
			t.Fatal(err)
		}
		go s.Start()
		t.Cleanup(func() { s.Shutdown(); s.WaitForShutdown() })
		if !s.ReadyForConnections(30 * time.Second) {
			t.Fatalf("%s: it takes no connections", file)
		}
	}
	return addresses
}

func freePorts(t *testing.T, n int) (ports []int) {
	t.Helper()
	for range n {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close() // all are held until there are n
		ports = append(ports, l.Addr().(*net.TCPAddr).Port)
	}
	return ports
}

// tries runs a command until it ends with code 0: a cluster takes a while to
// agree.
func (s *site) tries(args ...string) string {
	s.t.Helper()
	late := time.Now().Add(60 * time.Second)
	for {
		var out, errOut bytes.Buffer
		if s.main(context.Background(), &out, &errOut, args...) == 0 {
			return out.String() + errOut.String()
		}
		if time.Now().After(late) {
			s.t.Fatalf("outcrop %s: %s", strings.Join(args, " "), errOut.String())
		}
	}
}

// The servers, accounts and configuration of docs/operations.md do what the page
// says that they do.
func TestOperationsPage(t *testing.T) {
	dir := t.TempDir()
	addresses := documentedServers(t, dir)
	realm := "tls://" + strings.Join(addresses, ",") + "/team"
	config := block(t, "`~/.config/outcrop/config.toml`", "toml")
	as := func(user, password, more string) *site {
		s := &site{t: t, dir: t.TempDir()}
		home := filepath.Join(s.dir, "home")
		s.env = map[string]string{"HOME": home, "OUTCROP_HOME": filepath.Join(s.dir, "data"), "OUTCROP_STORE": realm,
			"OUTCROP_NATS_PASSWORD": "secret-of-" + password, "SYSTEM_PASSWORD": "secret-of-SYS"}
		conf := filepath.Join(home, ".config", "outcrop")
		if err := os.MkdirAll(conf, 0o700); err != nil {
			t.Fatal(err)
		}
		ca, err := os.ReadFile(filepath.Join(dir, "ca.pem"))
		if err != nil {
			t.Fatal(err)
		}
		for name, text := range map[string]string{
			filepath.Join(conf, "ca.pem"):      string(ca),
			filepath.Join(conf, "config.toml"): strings.Replace(config, `"worker"`, strconv.Quote(user), 1) + more,
			filepath.Join(s.dir, "s.jsonl"): `{"script":1,"model":"m","end":"last"}
{"tools":[{"name":"shell","id":"c1","args":{"command":"echo made > made.txt"}}]}
{"text":"Done."}
`,
		} {
			if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		return s
	}
	owner := as("owner", "TEAM_OWNER", "system_user = \"sys\"\nsystem_password_env = \"SYSTEM_PASSWORD\"\n")
	worker, reader, other := as("worker", "TEAM_WORKER", ""), as("reader", "TEAM_READER", ""), as("other", "OTHERS", "")

	owner.tries("realm", "init", "--streams", "3", "--lease", "2s")
	if got := owner.tries("realm", "check", "--json"); !strings.Contains(got, `"always"`) {
		t.Errorf("the verdict about the servers of the page: %s", got)
	}

	worker.does(0, "send", "--new", "--session", "s", "Go.")
	out, errOut, end := worker.works("--script", "s.jsonl")
	errOut.until(t, "working on")
	waitFor(t, func() string { return worker.does(0, "send", "s", "--questions", "--json") }, `"call":"c1"`)
	worker.does(0, "send", "s", "--allow", "c1")
	out.until(t, "s: turn completed\n")
	end()
	if _, err := os.Stat(filepath.Join(worker.dir, "made.txt")); err != nil {
		t.Error(err)
	}

	// Who may look, looks, and changes nothing.
	if got := reader.does(0, "show", "s"); !strings.Contains(got, "Done.") {
		t.Error(got)
	}
	if got := reader.does(0, "ls"); !strings.Contains(got, "Go.") {
		t.Error(got)
	}
	before := worker.does(0, "show", "s", "--log", "--json")
	reader.refused("send", "s", "Let me in.", "--wait", "1s")
	reader.refused("send", "s", "--cancel", "--wait", "1s")
	if got := worker.does(0, "show", "s", "--log", "--json"); got != before {
		t.Errorf("a reader changed the log:\n%s\nwas\n%s", got, before)
	}
	// Another tenant sees nothing, and workers make no realms.
	if got := other.refused("ls"); strings.Contains(got, "Go.") {
		t.Error(got)
	}
	const denied = "do not let this user do that"
	if got := worker.refused("realm", "init", "tls://"+addresses[0]+"/team2", "--streams", "1"); !strings.Contains(got, denied) {
		t.Errorf("a worker that makes a realm hears: %s", got)
	}
	clerk := as("worker", "TEAM_WORKER", "system_user = \"sys\"\nsystem_password_env = \"SYSTEM_PASSWORD\"\n")
	if got := clerk.refused("realm", "check"); !strings.Contains(got, denied) {
		t.Errorf("a worker that records a verdict hears: %s", got)
	}
	// Without TLS nobody comes in.
	worker.env["OUTCROP_STORE"] = strings.Replace(realm, "tls:", "nats:", 1)
	delete(worker.env, "OUTCROP_NATS_PASSWORD")
	worker.refused("ls")

	// Out, and in again.
	owner.does(0, "convert", "s", "sqlite:backup.db")
	owner.does(0, "rm", "s", "--purge")
	owner.does(2, "show", "s")
	owner.does(0, "convert", "s", realm, "--store", "sqlite:backup.db")
	if got := owner.does(0, "show", "s", "--log", "--json"); strings.TrimSpace(lastLines(got)) != strings.TrimSpace(lastLines(before)) {
		t.Errorf("restored is\n%s\nwas\n%s", got, before)
	}
}

// lastLines is what a command printed besides the program's own log.
func lastLines(text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "{") {
			b.WriteString(line)
		}
	}
	return b.String()
}

// refused runs a command that must not succeed.
func (s *site) refused(args ...string) string {
	s.t.Helper()
	var out, errOut bytes.Buffer
	ctx, stop := context.WithTimeout(context.Background(), 2*time.Second)
	defer stop()
	if got := s.main(ctx, &out, &errOut, args...); got == 0 {
		s.t.Errorf("outcrop %s: exit 0: %s%s", strings.Join(args, " "), out.String(), errOut.String())
	}
	return out.String() + errOut.String()
}
