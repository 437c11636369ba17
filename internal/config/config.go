// Package config is what a person can set: files, environment, the built-in
// providers, and the choice of a model.
//
// # Files
//
// The user's file is the one that --config or OUTCROP_CONFIG names, else
// $XDG_CONFIG_HOME/outcrop/config.toml, else ~/.config/outcrop/config.toml. The
// workspace's file is .outcrop/config.toml in the workspace. A value counts in
// this order: flag, environment, workspace file, user file, built in; each one
// keeps where it came from.
//
//	model = "deepseek:deepseek-chat"          # PROVIDER:MODEL
//	approve = "ask"                           # ask | edits | all | none
//	[providers.NAME]                          # [a-z][a-z0-9-]*, not script
//	kind = "openai"                           # openai | anthropic
//	base_url = "https://…/v1"
//	key_env = "NAME_API_KEY"                  # or key_command = ["pass", "show", "name"]
//	quirks = { reasoning = "none", max_tokens = "max_tokens", alternate_roles = false,
//	           system_role = "system", stream_usage = true }
//	[providers.NAME.models."MODEL"]
//	window = 128000                           # tokens
//	max_output = 8000
//	images = false
//	price = { input = 0, cache_read = 0, cache_write = 0, output = 0 }  # micro-dollars per million tokens
//	[compaction]
//	auto = true
//	ratio = 0.8
//	keep = 0.16
//	policy = "layers"                         # layers | dsh
//	model = ""
//	[limits]
//	steps = 200                               # 0: no limit
//	cost_usd = 0                              # of one process; 0: no limit
//	[retention]                               # days without a new event; 0: never
//	archive_after = 0
//	trash_after = 0
//	purge_after = 0                           # days in the trash
//	[nats]                                    # who comes to the servers of a realm
//	creds = "…"                               # path; or nkey, or user with password_env, or token_env alone
//	token_env = "OUTCROP_NATS_TOKEN"
//	password_env = "OUTCROP_NATS_PASSWORD"
//	ca = "…"                                  # path; TLS: who signs the servers' certificates
//	cert = "…"                                # path, with key: this client's certificate
//	system_creds = "…"                        # path; or system_user with system_password_env: for realm check
//	[context]
//	[mcp.NAME]
//	command = ["…"]                           # or url = "https://…"
//	key_env = "NAME_KEY"                      # with url; or key_command
//	key_header = "Authorization"              # the default: Authorization: Bearer KEY; any other: NAME: KEY
//	trust = false                             # true: tools that say readOnlyHint do not ask
//
// A program of [mcp] runs in the workspace with this process's environment but
// for the variables that hold keys.
//
// A workspace may belong to somebody else, so its file may set [compaction],
// [limits] and [context] only, and only so that nothing gets dearer or goes to
// somebody else: no compaction.model, no compaction.ratio below 0.2, and a limit
// counts when it is lower than the one that the person's own file or the
// built-in values set. Keys never stand in a file. An unknown member is
// an error with its line and the nearest name that there is.
//
// # Library
//
// Files are read with pelletier/go-toml: its parser gives the place of every
// member, which the errors and the origins need, and it is one module without
// dependencies.
package config

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// Env is what loading needs from outside.
type Env struct {
	Getenv    func(string) string
	Home      string // the user's home directory, "" when there is none
	File      string // the file that --config names, absolute; "" without the flag
	FileFrom  string // what named File, for messages: --config or OUTCROP_CONFIG
	Workspace string // absolute, "" when there is none
}

// Origin says where a value came from: "built in", the name of a variable, or
// FILE:LINE.
type Origin string

// BuiltIn is the origin of a value that nobody set.
const BuiltIn Origin = "built in"

// Config is the configuration after everything but flags was taken together.
type Config struct {
	Model      string // PROVIDER:MODEL, "" when none is set; from the environment or the file
	Approve    string
	Compaction Compaction
	Limits     Limits
	Retention  Retention
	Providers  map[string]*Provider
	MCP        map[string]*MCP
	NATS       NATS

	// UserFile is the path of the user's file, there or not; "" without a home.
	UserFile string

	env       Env
	modelFrom Origin
	fromEnv   bool // Model came from the environment
	values    []Value
}

// Value is one setting as it counts.
type Value struct {
	Name   string // "limits.steps"
	Text   string // as it would stand in a file
	Plain  string // the same without the quotes of a text
	Origin Origin
}

// Compaction is [compaction].
type Compaction struct {
	Auto   bool
	Ratio  float64
	Keep   float64
	Policy string
	Model  string // "": the conversation's own
}

// Limits is [limits]. Zero stands for no limit.
type Limits struct {
	Steps   int
	CostUSD float64
}

// Retention is [retention], in days; 0 stands for never. Nothing happens by
// itself: outcrop retain does what it asks for.
type Retention struct {
	ArchiveAfter int
	TrashAfter   int
	PurgeAfter   int
}

// Error is a fault of a configuration file or a variable.
type Error struct {
	Path string // file, or the name of the variable
	Line int    // 0 when unknown
	Msg  string
}

func (e *Error) Error() string {
	if e.Line > 0 {
		return fmt.Sprintf("%s:%d: %s", e.Path, e.Line, e.Msg)
	}
	return e.Path + ": " + e.Msg
}

// Load reads the files and the environment.
func Load(env Env) (*Config, error) {
	c := &Config{
		Approve:    "ask",
		Compaction: Compaction{Auto: true, Ratio: 0.8, Keep: 0.16, Policy: "layers"},
		Limits:     Limits{Steps: 200},
		Providers:  builtInProviders(),
		MCP:        map[string]*MCP{},
		NATS:       noNATS(),
		env:        env,
		modelFrom:  BuiltIn,
	}
	o := newOrigins()
	if err := c.userFile(o); err != nil {
		return nil, err
	}
	if err := c.workspaceFile(o); err != nil {
		return nil, err
	}
	if err := c.environment(o); err != nil {
		return nil, err
	}
	if err := c.together(o); err != nil {
		return nil, err
	}
	c.values = c.list(o)
	return c, nil
}

// together checks what one file alone cannot tell: members that two files may
// have set, and names that another file may give a meaning to.
func (c *Config) together(o origins) error {
	d := c.Compaction
	if from, ok := o["compaction.ratio"]; d.Ratio <= d.Keep && ok {
		return &Error{Path: string(from), Msg: fmt.Sprintf("compaction.ratio: %v must be more than compaction.keep, which is %v", d.Ratio, d.Keep)}
	}
	if from, ok := o["compaction.keep"]; d.Ratio <= d.Keep && ok {
		return &Error{Path: string(from), Msg: fmt.Sprintf("compaction.keep: %v must be less than compaction.ratio, which is %v", d.Keep, d.Ratio)}
	}
	if d.Model == "" {
		return nil
	}
	if _, err := c.find(d.Model, o["compaction.model"]+": compaction.model"); err != nil {
		return err
	}
	return nil
}

// userFile takes the user's file. One that was named must be there.
func (c *Config) userFile(o origins) error {
	c.UserFile = c.env.File
	if c.UserFile == "" {
		if c.UserFile = defaultFile(c.env); c.UserFile == "" {
			return nil
		}
	}
	text, err := readFile(c.UserFile)
	if errors.Is(err, fs.ErrNotExist) {
		if c.env.File == "" {
			return nil
		}
		return &Error{Path: c.Short(c.UserFile), Msg: "there is no such file, " + c.env.FileFrom + " names it"}
	}
	if err != nil {
		return &Error{Path: c.Short(c.UserFile), Msg: reason(err)}
	}
	return c.file(c.UserFile, text, false, o)
}

func defaultFile(env Env) string {
	if d := env.Getenv("XDG_CONFIG_HOME"); filepath.IsAbs(d) {
		return filepath.Join(d, "outcrop", "config.toml")
	}
	if env.Home == "" {
		return ""
	}
	return filepath.Join(env.Home, ".config", "outcrop", "config.toml")
}

// workspaceFile takes the workspace's file, which somebody else may have put
// there.
func (c *Config) workspaceFile(o origins) error {
	if c.env.Workspace == "" {
		return nil
	}
	path := filepath.Join(c.env.Workspace, ".outcrop", "config.toml")
	if path == c.UserFile {
		return nil
	}
	text, err := readFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return &Error{Path: c.Short(path), Msg: reason(err)}
	}
	return c.file(path, text, true, o)
}

// maxFile is the largest configuration file.
const maxFile = 1 << 20

func readFile(path string) ([]byte, error) {
	fi, err := os.Stat(path)
	switch {
	case err != nil:
		return nil, err
	case !fi.Mode().IsRegular():
		return nil, errors.New("this is not a regular file")
	case fi.Size() > maxFile:
		return nil, fmt.Errorf("%d bytes are too long for a configuration file", fi.Size())
	}
	return os.ReadFile(path)
}

// reason is a file error without the path, which the message names already.
func reason(err error) string {
	var pe *fs.PathError
	if errors.As(err, &pe) {
		return pe.Err.Error()
	}
	return err.Error()
}

// environment takes the variables.
func (c *Config) environment(o origins) error {
	if m := c.env.Getenv("OUTCROP_MODEL"); m != "" {
		c.Model, c.fromEnv = m, true
		c.modelFrom = "OUTCROP_MODEL"
		o["model"] = c.modelFrom
	}
	for _, name := range [...]string{"openai", "anthropic"} {
		variable := strings.ToUpper(name) + "_BASE_URL"
		v := c.env.Getenv(variable)
		if v == "" {
			continue
		}
		if msg := badURL(v, "https://HOST/v1"); msg != "" {
			return &Error{Path: variable, Msg: msg}
		}
		c.Providers[name].BaseURL = v
		o["providers."+name+".base_url"] = Origin(variable)
	}
	return nil
}

// Short writes a path below the home directory with ~.
func (c *Config) Short(path string) string {
	if c.env.Home != "" {
		if rest, ok := strings.CutPrefix(path, c.env.Home+string(filepath.Separator)); ok {
			return "~" + string(filepath.Separator) + rest
		}
	}
	return path
}

// Values lists every setting, sorted by section.
func (c *Config) Values() []Value { return c.values }
