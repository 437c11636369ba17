package jetstream

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	natsjs "github.com/nats-io/nats.go/jetstream"

	"github.com/outcrop-dev/outcrop"
)

// Auth is who comes to the servers, and how they are known. Members that are
// empty do not count. At most one of Creds, NKey, Token and User is set.
type Auth struct {
	Creds    string // file with a JWT and its key, as nsc writes it
	NKey     string // file with the seed of an NKey
	Token    string
	User     string
	Password string
	CA       string // file with the certificates that sign those of the servers
	Cert     string // file with this client's certificate, with Key
	Key      string // file with its key
}

func (a Auth) check() error {
	n := 0
	for _, s := range []string{a.Creds, a.NKey, a.Token, a.User} {
		if s != "" {
			n++
		}
	}
	msg := ""
	switch {
	case n > 1:
		msg = "credentials, an NKey, a token and a user are given: only one of them can be"
	case (a.Cert == "") != (a.Key == ""):
		msg = "a certificate of a client needs its key, and the key its certificate"
	case a.Password != "" && a.User == "":
		msg = "a password is given, and no user"
	default:
		return nil
	}
	return &outcrop.Error{Op: "open", Seq: -1, Offset: -1, Err: outcrop.ErrRefused, Msg: msg}
}

// options are what the client dials with.
func (a Auth) options() ([]nats.Option, error) {
	var opts []nats.Option
	switch {
	case a.Creds != "":
		if _, err := os.Stat(a.Creds); err != nil {
			return nil, err
		}
		opts = append(opts, nats.UserCredentials(a.Creds))
	case a.NKey != "":
		o, err := nats.NkeyOptionFromSeed(a.NKey)
		if err != nil {
			return nil, fmt.Errorf("the NKey in %s: %w", a.NKey, err)
		}
		opts = append(opts, o)
	case a.Token != "":
		opts = append(opts, nats.Token(a.Token))
	case a.User != "":
		opts = append(opts, nats.UserInfo(a.User, a.Password))
	}
	if a.CA != "" || a.Cert != "" {
		c := &tls.Config{MinVersion: tls.VersionTLS12}
		if a.CA != "" {
			pem, err := os.ReadFile(a.CA)
			if err != nil {
				return nil, err
			}
			c.RootCAs = x509.NewCertPool()
			if !c.RootCAs.AppendCertsFromPEM(pem) {
				return nil, fmt.Errorf("%s holds no certificate", a.CA)
			}
		}
		if a.Cert != "" {
			pair, err := tls.LoadX509KeyPair(a.Cert, a.Key)
			if err != nil {
				return nil, err
			}
			c.Certificates = []tls.Certificate{pair}
		}
		opts = append(opts, nats.Secure(c))
	}
	return opts, nil
}

// Once it was there, a connection is tried again for ever: operations have their
// own patience.
const (
	dialWithin    = 5 * time.Second
	reconnectWait = 100 * time.Millisecond
	reconnectMost = 2 * time.Second
)

func (s *Store) dial(ctx context.Context) (*nats.Conn, natsjs.JetStream, error) {
	return s.dialAs(ctx, s.opt.Auth)
}

func (s *Store) dialAs(ctx context.Context, a Auth) (*nats.Conn, natsjs.JetStream, error) {
	if err := context.Cause(ctx); err != nil {
		return nil, nil, err
	}
	opts, err := a.options()
	if err != nil {
		return nil, nil, s.problem("open", errors.Join(outcrop.ErrRefused, err), err.Error(), "see [nats] in the configuration, and the flags --creds and the like")
	}
	logger := s.opt.Logger
	opts = append(opts,
		nats.Name("outcrop "+s.opt.Program+" "+s.id),
		nats.Timeout(dialWithin),
		nats.MaxReconnects(-1),
		nats.CustomReconnectDelay(func(tries int) time.Duration {
			return min(reconnectWait<<min(tries, 8), reconnectMost)
		}),
		// A message that waits for a connection here is one whose fate nobody
		// knows; the lease keeps it and sends it again.
		nats.ReconnectBufSize(-1),
		// A server that is behind a cut line is noticed within seconds.
		nats.PingInterval(5*time.Second), nats.MaxPingsOutstanding(2),
		nats.DisconnectErrHandler(func(_ *nats.Conn, err error) {
			if err != nil {
				logger.Warn("the connection to the realm is lost", "store", s.Address(), "error", err)
			}
		}),
		nats.ReconnectHandler(func(nc *nats.Conn) {
			logger.Info("connected to the realm again", "store", s.Address(), "server", nc.ConnectedUrlRedacted())
		}),
		nats.ErrorHandler(func(_ *nats.Conn, sub *nats.Subscription, err error) {
			if s.deny(err) {
				logger.Info("the servers let something not through", "store", s.Address(), "error", err)
				return
			}
			logger.Warn("the servers report an error", "store", s.Address(), "error", err)
		}),
	)
	nc, err := nats.Connect(s.addr.urls(), opts...)
	if err != nil {
		return nil, nil, s.failed("open", "", err)
	}
	js, err := natsjs.New(nc, natsjs.WithPublishAsyncMaxPending(16<<10), natsjs.WithDefaultTimeout(s.opt.AckWait))
	if err != nil {
		nc.Close()
		return nil, nil, s.failed("open", "", err)
	}
	return nc, js, nil
}

// denial is what a server did not let this user publish.
type denial struct {
	at  time.Time
	err error
}

// deny notes an error that says so, where somebody waits for an answer: words
// to other programs, which need none, do not count.
func (s *Store) deny(err error) bool {
	if !errors.Is(err, nats.ErrPermissionViolation) {
		return false
	}
	_, subject, found := strings.Cut(err.Error(), `Publish to "`)
	if !found || strings.HasPrefix(subject, "outcrop.") && !strings.HasPrefix(subject, "outcrop."+s.addr.Name+".log.") {
		return false
	}
	s.denied.Store(&denial{at: time.Now(), err: err})
	subject, _, _ = strings.Cut(subject, `"`)
	s.asking.Range(func(q, _ any) bool {
		if q := q.(*question); q.subject == "" || q.subject == subject {
			q.cancel(err)
		}
		return true
	})
	return true
}

// question is something that waits for an answer.
type question struct {
	subject string // on which it was asked; "" when it is not known
	cancel  context.CancelCauseFunc
}

// undenied does something that waits for answers, which do not come when a
// server did not let the question through: it ends then. Servers do not say
// whose question it was; what else is under way at that moment without a subject
// ends too, and would have for the same reason in most cases.
func (s *Store) undenied(ctx context.Context, do func(ctx context.Context) error) error {
	return s.undeniedOn(ctx, "", do)
}

// undeniedOn is undenied for one question on a subject.
func (s *Store) undeniedOn(ctx context.Context, subject string, do func(ctx context.Context) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	q := &question{subject, cancel}
	s.asking.Store(q, nil)
	defer s.asking.Delete(q)
	err := do(ctx)
	if c := context.Cause(ctx); err != nil && errors.Is(c, nats.ErrPermissionViolation) {
		return c
	}
	return err
}
