package cli

import (
	"github.com/spf13/cobra"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/internal/answer"
	"github.com/outcrop-dev/outcrop/internal/config"
	"github.com/outcrop-dev/outcrop/internal/exit"
	"github.com/outcrop-dev/outcrop/internal/jsonwire"
	"github.com/outcrop-dev/outcrop/internal/requests"
	"github.com/outcrop-dev/outcrop/internal/term"
	"github.com/outcrop-dev/outcrop/llm"
)

func (a *app) newMessagesCommand() *cobra.Command {
	var v viewFlags
	var format string
	c := &cobra.Command{
		Use:   "messages TARGET",
		Short: "The messages that the surface derives to",
		Args:  exactly("TARGET"),
		RunE: func(c *cobra.Command, args []string) error {
			if err := v.check(c); err != nil {
				return err
			}
			if format != "log" && format != config.KindOpenAI && format != config.KindAnthropic {
				return exit.Usagef("--format %s: use log, openai or anthropic", term.Quote(format))
			}
			l, err := a.load(c.Context(), args[0], v)
			if err != nil {
				return err
			}
			msgs, err := formatted(l, format)
			if err != nil {
				return err
			}
			if a.Flags.JSON {
				return a.Line(l.fallback(answer.New().Text("session", l.header.ID).Number("at", int64(l.at)).Raw("messages", msgs)).End())
			}
			return a.messagesText(l, msgs, format)
		},
	}
	v.register(c)
	c.Flags().StringVar(&format, "format", "log", "`FORM`: log, as the log has them; openai or anthropic, as that API takes them")
	return c
}

// formatted is a JSON array of derived messages.
func formatted(l *seen, format string) ([]byte, error) {
	msgs := l.messages()
	if format == "log" {
		return rawMessages(msgs), nil
	}
	parsed, err := requests.Parse(msgs)
	if err != nil {
		return nil, err
	}
	built := llm.Build(parsed)
	// A request must end with a user message; a list of messages need not.
	if n := len(built); n > 0 && (n > len(parsed) || n == 1) && built[n-1].ID == "outcrop-continue" {
		built = built[:n-1]
	}
	p, err := (&config.Provider{Name: format, Kind: format, BaseURL: "http://localhost"}).Offline()
	if err != nil {
		return nil, err
	}
	req := llm.Request{Messages: built, Images: true}
	if l.objects != nil {
		req.Objects = l.objects
	}
	return jsonwire.Get(p.Body(req), "messages"), nil
}

// rawMessages is a JSON array of messages exactly as the log has them.
func rawMessages(msgs []*outcrop.Message) []byte {
	return answer.List(len(msgs), func(dst []byte, i int) []byte { return append(dst, msgs[i].Raw...) })
}

func (a *app) messagesText(l *seen, msgs []byte, format string) error {
	if l.noMarkers {
		a.Note("the messages of this log carry no surface markers: none are derived")
	}
	if format == "log" {
		for _, n := range l.fold.Nodes {
			a.Printer().Message(l.log.At(n))
		}
		return nil
	}
	a.Text(string(jsonwire.Indent(msgs)) + "\n")
	return nil
}
