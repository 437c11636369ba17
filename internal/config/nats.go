package config

// NATS is [nats]: who this program is to the servers of a realm. Secrets stand in
// variables, not in a file. What is "" does not count.
type NATS struct {
	Creds       string // path of a credentials file, as nsc writes it
	NKey        string // path of a file with the seed of an NKey
	TokenEnv    string
	User        string
	PasswordEnv string
	CA          string // path of the certificates that sign those of the servers
	Cert        string // path of this client's certificate
	Key         string // path of its key

	// Who asks the servers about themselves, for outcrop realm check.
	SystemCreds       string
	SystemUser        string
	SystemPasswordEnv string
}

// noNATS are the built-in values.
func noNATS() NATS {
	return NATS{TokenEnv: "OUTCROP_NATS_TOKEN", PasswordEnv: "OUTCROP_NATS_PASSWORD", SystemPasswordEnv: "OUTCROP_NATS_SYSTEM_PASSWORD"}
}

type documentNATS struct {
	Creds             *string `toml:"creds"`
	NKey              *string `toml:"nkey"`
	TokenEnv          *string `toml:"token_env"`
	User              *string `toml:"user"`
	PasswordEnv       *string `toml:"password_env"`
	CA                *string `toml:"ca"`
	Cert              *string `toml:"cert"`
	Key               *string `toml:"key"`
	SystemCreds       *string `toml:"system_creds"`
	SystemUser        *string `toml:"system_user"`
	SystemPasswordEnv *string `toml:"system_password_env"`
}

// natsMember is one member of [nats].
type natsMember struct {
	name string
	to   *string
	v    *string
}

func (n *NATS) members(d *documentNATS) []natsMember {
	return []natsMember{
		{"nats.creds", &n.Creds, d.Creds}, {"nats.nkey", &n.NKey, d.NKey}, {"nats.token_env", &n.TokenEnv, d.TokenEnv},
		{"nats.user", &n.User, d.User}, {"nats.password_env", &n.PasswordEnv, d.PasswordEnv},
		{"nats.ca", &n.CA, d.CA}, {"nats.cert", &n.Cert, d.Cert}, {"nats.key", &n.Key, d.Key},
		{"nats.system_creds", &n.SystemCreds, d.SystemCreds}, {"nats.system_user", &n.SystemUser, d.SystemUser},
		{"nats.system_password_env", &n.SystemPasswordEnv, d.SystemPasswordEnv},
	}
}

func (f *filed) nats(d *documentNATS) error {
	for _, m := range f.c.NATS.members(d) {
		put(f, m.name, m.to, m.v)
	}
	n := &f.c.NATS
	switch {
	case n.Creds != "" && n.NKey != "":
		return f.bad("nats.nkey", "give creds or nkey, not both")
	case (n.Creds != "" || n.NKey != "") && n.User != "":
		return f.bad("nats.user", "give a user, or creds or nkey, not both")
	case (n.Cert == "") != (n.Key == ""):
		return f.bad("nats.cert", "cert and key belong together")
	}
	return nil
}
