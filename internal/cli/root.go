package cli

import (
	"context"
	"errors"
	"runtime"
	"runtime/debug"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/internal/chat"
	"github.com/outcrop-dev/outcrop/internal/config"
	"github.com/outcrop-dev/outcrop/internal/exit"
	"github.com/outcrop-dev/outcrop/internal/run"
	"github.com/outcrop-dev/outcrop/internal/term"
)

// commands are the constructors of all commands, in the order of the help.
func (a *app) commands() []*cobra.Command {
	return []*cobra.Command{
		run.Command(a.Desk),
		chat.Command(a.Desk, chat.Serving{Beside: a.beside, Browse: a.openBrowser}),
		a.newListCommand(),
		a.newShowCommand(),
		a.newSurfaceCommand(),
		a.newMessagesCommand(),
		a.newRequestCommand(),
		a.newLineageCommand(),
		a.newUsageCommand(),
		a.newVerifyCommand(),
		a.newDoctorCommand(),
		a.newForkCommand(),
		a.newRewindCommand(),
		run.RetryCommand(a.Desk),
		a.newCompactCommand(),
		a.newPruneCommand(),
		a.newPinCommand(),
		a.newSearchCommand(),
		a.newConvertCommand(),
		a.newImportCommand(),
		a.newExportCommand(),
		a.newTitleCommand(),
		a.newTagCommand(),
		a.newStarCommand(),
		a.newArchiveCommand(),
		a.newRemoveCommand(),
		a.newRestoreCommand(),
		a.newDiskCommand(),
		a.newRetainCommand(),
		a.newRedactCommand(),
		a.newServeCommand(),
		a.newSendCommand(),
		a.newWorkerCommand(),
		a.newRealmCommand(),
		a.newModelsCommand(),
		a.newConfigCommand(),
		a.newDemoCommand(),
		a.newBenchCommand(),
	}
}

func (a *app) newRoot() *cobra.Command {
	root := &cobra.Command{
		Use:   "outcrop",
		Short: "Keep everything that an agent did, and see what the model saw",
		Long: `Outcrop runs an agent and keeps everything that it did as one append-only
event log. What the model sees is the surface, folded from the log; what a
history edit covers stays in the log below it.

A TARGET is the id of a session, the start of one, "last", or the path of a log
file (.jsonl or .jsonl.zstd).`,
		Version:           version(),
		SilenceErrors:     true,
		SilenceUsage:      true,
		DisableAutoGenTag: true,
		PersistentPreRunE: func(*cobra.Command, []string) error { return a.OpenLog() },
	}
	root.SetVersionTemplate("outcrop {{.Version}}\n")
	root.SetIn(a.Env.Stdin)
	root.SetOut(a.Out)
	root.SetErr(a.ErrOut)
	root.SetFlagErrorFunc(flagError)
	root.CompletionOptions.HiddenDefaultCmd = false
	f := root.PersistentFlags()
	f.StringVar(&a.Flags.Store, "store", "", "`PLACE` of the sessions: jsonl:DIR, jsonl+plain:DIR, DIR, sqlite:FILE or nats://HOST/NAME (also OUTCROP_STORE)")
	f.StringVar(&a.Flags.Creds, "creds", "", "credentials `FILE` for nats://HOST/NAME (also OUTCROP_NATS_CREDS)")
	f.StringVar(&a.Flags.Config, "config", "", "configuration `FILE` (also OUTCROP_CONFIG)")
	f.StringVar(&a.Flags.Cwd, "cwd", "", "workspace `DIR` (default the session's, else the current one)")
	f.BoolVar(&a.Flags.JSON, "json", false, "answer in JSON")
	f.BoolVar(&a.Flags.Quiet, "quiet", false, "no notes on stderr, only errors")
	f.StringVar(&a.Flags.LogFile, "log-file", "", "append the program's own log to `FILE`")
	f.StringVar(&a.Flags.LogLevel, "log-level", "", "`LEVEL` of that log: debug, info, warn, error (default warn, with a file info)")
	for _, c := range a.commands() {
		if c.ValidArgsFunction == nil && strings.Contains(c.Use, " TARGET") {
			c.ValidArgsFunction = a.completeTarget
		}
		root.AddCommand(c)
	}
	root.SetHelpCommand(newHelpCommand(root))
	root.InitDefaultHelpCmd()
	nameShells(root)
	root.InitDefaultHelpFlag()
	root.InitDefaultVersionFlag()
	root.SetUsageTemplate(usageTemplate)
	return root
}

// usageTemplate is cobra's, shorter, and with lines of at most 80 columns.
const usageTemplate = `Usage:{{if .Runnable}}
  {{.UseLine}}{{end}}{{if .HasAvailableSubCommands}}
  {{.CommandPath}} COMMAND{{if not .HasParent}} [TARGET]{{end}} [flags]{{end}}{{if .HasAvailableSubCommands}}

Commands:{{range .Commands}}{{if .IsAvailableCommand}}
  {{rpad .Name .NamePadding}} {{.Short}}{{end}}{{end}}{{end}}{{if .HasAvailableLocalFlags}}

Flags:
{{.LocalFlags.FlagUsagesWrapped 80 | trimTrailingWhitespaces}}{{end}}{{if .HasAvailableInheritedFlags}}

Flags of all commands:
{{.InheritedFlags.FlagUsagesWrapped 80 | trimTrailingWhitespaces}}{{end}}{{if .HasAvailableSubCommands}}

"{{.CommandPath}} COMMAND --help" says more about a command.{{end}}
`

func newHelpCommand(root *cobra.Command) *cobra.Command {
	return &cobra.Command{
		Use:   "help [COMMAND]",
		Short: "Help about a command",
		RunE: func(_ *cobra.Command, args []string) error {
			c, rest, err := root.Find(args)
			if err != nil || c == nil || len(rest) > 0 {
				return unknownCommand(root, args)
			}
			return c.Help()
		},
	}
}

func (a *app) execute(ctx context.Context, args []string) error {
	root := a.newRoot()
	root.SetArgs(args)
	if _, _, err := root.Find(args); err != nil && !isCompletion(args) {
		return unknownCommand(root, args)
	}
	return root.ExecuteContext(ctx)
}

// isCompletion reports a question of a shell, which cobra answers by commands
// that it adds at the last moment.
func isCompletion(args []string) bool {
	return len(args) > 0 && (args[0] == "completion" || strings.HasPrefix(args[0], "__complete"))
}

func unknownCommand(root *cobra.Command, args []string) error {
	name := ""
	for _, arg := range args {
		if !strings.HasPrefix(arg, "-") {
			name = arg
			break
		}
		// A flag that is not known may have been taken for one with a value, and
		// the command for that value.
		flag, _, _ := strings.Cut(strings.TrimPrefix(arg, "--"), "=")
		if strings.HasPrefix(arg, "--") && flag != "" && root.PersistentFlags().Lookup(flag) == nil && root.Flags().Lookup(flag) == nil {
			return noFlag(root, flag)
		}
	}
	var names []string
	for _, c := range root.Commands() {
		names = append(names, c.Name())
	}
	names = append(names, "completion")
	return exit.Usagef("there is no command %s%s", term.Quote(name), meant(name, names, "outcrop --help lists them"))
}

// flagError makes a sentence of what the flag parser found.
func flagError(c *cobra.Command, err error) error {
	more := c.CommandPath() + " --help lists the flags"
	var unknown *pflag.NotExistError
	if errors.As(err, &unknown) && len(unknown.GetSpecifiedName()) > 0 {
		name := unknown.GetSpecifiedName()
		if unknown.GetSpecifiedShortnames() != "" {
			return exit.Usagef("%s has no flag -%s: %s", c.CommandPath(), term.Line(name), more)
		}
		return noFlag(c, name)
	}
	var invalid *pflag.InvalidValueError
	if errors.As(err, &invalid) {
		return exit.Usagef("--%s %s: give %s", invalid.GetFlag().Name, term.Quote(invalid.GetValue()), wanted(invalid.GetFlag()))
	}
	var bare *pflag.ValueRequiredError
	if errors.As(err, &bare) {
		return exit.Usagef("--%s needs a value: %s", bare.GetFlag().Name, more)
	}
	return exit.Usagef("%v: %s", err, more)
}

// wanted says what the value of a flag must be.
func wanted(f *pflag.Flag) string {
	switch f.Value.Type() {
	case "int", "int64":
		return "a whole number"
	case "float64":
		return "a number"
	case "bool":
		return "true or false, or nothing"
	}
	return "a " + f.Value.Type()
}

func noFlag(c *cobra.Command, name string) error {
	var names []string
	add := func(f *pflag.Flag) { names = append(names, f.Name) }
	c.Flags().VisitAll(add)
	c.PersistentFlags().VisitAll(add)
	c.InheritedFlags().VisitAll(add)
	hint := c.CommandPath() + " --help lists the flags"
	if near := config.Nearest(name, names); near != "" {
		hint = "did you mean --" + near + "?"
	}
	return exit.Usagef("%s has no flag --%s: %s", c.CommandPath(), term.Line(name), hint)
}

// meant ends a sentence with the nearest of the names, or with what else helps.
func meant(name string, names []string, otherwise string) string {
	if near := config.Nearest(name, names); near != "" {
		return ": did you mean " + near + "?"
	}
	return ": " + otherwise
}

// exactly is the number of arguments that a command takes, with words for what
// they are.
func exactly(what ...string) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		switch {
		case len(args) < len(what):
			return exit.Usagef("%s needs %s: %s", c.CommandPath(), strings.Join(what[len(args):], " and "), "usage: "+c.UseLine())
		case len(args) > len(what):
			return exit.Usagef("%s does not take %s: usage: %s", c.CommandPath(), term.Quote(args[len(what)]), c.UseLine())
		}
		return nil
	}
}

// version is the module's version, as far as the build knows it.
func version() string {
	v := "devel"
	if bi, ok := debug.ReadBuildInfo(); ok && bi.Main.Version != "" && bi.Main.Version != "(devel)" {
		v = bi.Main.Version
	}
	return v + " (session format " + itoa(outcrop.FormatVersion) + ", " + runtime.Version() + " " + runtime.GOOS + "/" + runtime.GOARCH + ")"
}
