package desk

import (
	"log/slog"
	"path/filepath"

	"github.com/outcrop-dev/outcrop/internal/config"
	"github.com/outcrop-dev/outcrop/store/jetstream"
)

// RealmOptions are how a realm is opened: who this program is to its servers comes
// from --creds, else OUTCROP_NATS_CREDS, else [nats] of the configuration.
func (a *Desk) RealmOptions() (jetstream.Options, error) {
	c, err := a.LoadConfig("")
	if err != nil {
		return jetstream.Options{}, err
	}
	n := &c.NATS
	auth := jetstream.Auth{CA: a.beside(c, n.CA), Cert: a.beside(c, n.Cert), Key: a.beside(c, n.Key)}
	creds := a.Flags.Creds
	if creds == "" {
		creds = a.Env.Getenv("OUTCROP_NATS_CREDS")
	}
	switch {
	case creds != "":
		auth.Creds = a.Path(creds)
	case n.Creds != "":
		auth.Creds = a.beside(c, n.Creds)
	case n.NKey != "":
		auth.NKey = a.beside(c, n.NKey)
	case n.User != "":
		auth.User, auth.Password = n.User, a.Env.Getenv(n.PasswordEnv)
	default:
		auth.Token = a.Env.Getenv(n.TokenEnv)
	}
	return jetstream.Options{Auth: auth, Program: "outcrop", Now: a.Now, Logger: a.Logger, Unsynced: a.noteUnsynced}, nil
}

// noteUnsynced says once a command that a realm may not keep what it
// acknowledges, as a note; a log file has it as a warning. A command may open
// the realm more than once.
func (a *Desk) noteUnsynced(what string) {
	a.unsynced.Do(func() {
		a.Note("%s", what)
		if a.LogFile != nil {
			slog.New(slog.NewTextHandler(a.LogFile, nil)).Warn(what)
		}
	})
}

// SystemAuth is who asks the servers of a realm about themselves; nil when nobody
// is set. flag is a credentials file.
func (a *Desk) SystemAuth(flag string) (*jetstream.Auth, error) {
	c, err := a.LoadConfig("")
	if err != nil {
		return nil, err
	}
	n := &c.NATS
	auth := jetstream.Auth{CA: a.beside(c, n.CA), Cert: a.beside(c, n.Cert), Key: a.beside(c, n.Key)}
	switch {
	case flag != "":
		auth.Creds = a.Path(flag)
	case n.SystemCreds != "":
		auth.Creds = a.beside(c, n.SystemCreds)
	case n.SystemUser != "":
		auth.User, auth.Password = n.SystemUser, a.Env.Getenv(n.SystemPasswordEnv)
	default:
		return nil, nil
	}
	return &auth, nil
}

// beside is a path in the configuration: a relative one begins at its file.
func (a *Desk) beside(c *config.Config, path string) string {
	if path == "" || filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(filepath.Dir(c.UserFile), path)
}
