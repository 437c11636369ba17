package cli

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/agent"
	"github.com/outcrop-dev/outcrop/internal/answer"
	"github.com/outcrop-dev/outcrop/internal/attach"
	"github.com/outcrop-dev/outcrop/internal/brief"
	"github.com/outcrop-dev/outcrop/internal/desk"
	"github.com/outcrop-dev/outcrop/internal/exit"
	"github.com/outcrop-dev/outcrop/internal/run"
	"github.com/outcrop-dev/outcrop/internal/term"
	"github.com/outcrop-dev/outcrop/message"
	"github.com/outcrop-dev/outcrop/store"
	"github.com/outcrop-dev/outcrop/worker"
)

// sending is one run of the command send.
type sending struct {
	a         *app
	fresh     bool
	steer     bool
	cancel    bool
	questions bool
	allow     string
	refuse    string
	id        string
	session   string
	attach    []string
	wait      time.Duration
}

func (a *app) newSendCommand() *cobra.Command {
	s := &sending{a: a}
	c := &cobra.Command{
		Use:   "send TARGET [TEXT...]",
		Short: "Give input to a session, wherever it is worked on",
		Long: `Puts TEXT into the inbox of a session and ends when it is stored there: an
outcrop worker, or whoever goes on with the session, answers it. Without TEXT,
or with a last word -, stdin is read. With --new a session is made for it:

  outcrop send --new "Summarise the reports in this folder."

In a realm (nats://) whoever holds the session is asked to take the input;
when nobody does, this program puts it in by itself. Elsewhere a session that
another program holds is refused (exit 4).

Each input has a message id. Sending again with the same --id puts in nothing:
it says where the input is. So a script may repeat a send whose answer was
lost.

--cancel ends the turn that runs and drops what is pending. --questions lists
the calls that wait for somebody's approval, --allow and --refuse answer one;
TEXT is then the reason of a refusal.`,
		Args: cobra.ArbitraryArgs,
		RunE: func(c *cobra.Command, args []string) error { return s.do(c.Context(), args) },
	}
	fl := c.Flags()
	fl.BoolVar(&s.fresh, "new", false, "make a new session for TEXT; there is no TARGET then")
	fl.BoolVar(&s.steer, "steer", false, "give it to the turn that runs, at its next step")
	fl.BoolVar(&s.cancel, "cancel", false, "end the running turn and drop what is pending")
	fl.BoolVar(&s.questions, "questions", false, "list the calls that wait for approval")
	fl.StringVar(&s.allow, "allow", "", "let the `CALL` run, this once (an id that --questions lists)")
	fl.StringVar(&s.refuse, "refuse", "", "do not let the `CALL` run; TEXT says why")
	fl.StringVar(&s.id, "id", "", "the message `ID` (default a new one)")
	fl.StringVar(&s.session, "session", "", "with --new: the `ID` of the session (default a new one)")
	fl.StringArrayVar(&s.attach, "attach", nil, "give this `FILE` along: an image or text; may be repeated")
	fl.DurationVar(&s.wait, "wait", 30*time.Second, "try for this `TIME` while the session changes hands")
	return c
}

// check says what the flags mean together.
func (s *sending) check(args []string) error {
	modes := 0
	for _, on := range []bool{s.fresh, s.cancel, s.questions, s.allow != "", s.refuse != ""} {
		if on {
			modes++
		}
	}
	input := !s.cancel && !s.questions && s.allow == "" && s.refuse == ""
	switch {
	case modes > 1:
		return exit.Usagef("give one of --new, --cancel, --questions, --allow and --refuse")
	case !s.fresh && len(args) == 0:
		return exit.Usagef("send needs TARGET: the session; --new makes one")
	case s.session != "" && !s.fresh:
		return exit.Usagef("--session goes with --new: TARGET names a session that is there")
	case s.steer && (!input || s.fresh):
		return exit.Usagef("--steer goes with TEXT for a session that is there")
	case !input && (len(s.attach) > 0 || s.id != ""):
		return exit.Usagef("--attach and --id go with TEXT")
	case len(args) > 1 && (s.cancel || s.questions || s.allow != ""):
		return exit.Usagef("send does not take %s here", term.Quote(args[1]))
	case s.wait <= 0:
		return exit.Usagef("--wait %s: give a time, as in 30s", s.wait)
	}
	return nil
}

func (s *sending) do(ctx context.Context, args []string) error {
	if err := s.check(args); err != nil {
		return err
	}
	ctx, stop := context.WithTimeoutCause(ctx, s.wait, fmt.Errorf("it could not be done within %s", s.wait))
	defer stop()
	if s.fresh {
		return s.begin(ctx, args)
	}
	t, err := s.a.Resolve(ctx, args[0])
	if err != nil {
		return err
	}
	defer t.Store.Close()
	if t.ID == "" { // a log file: its header names it
		sd, err := t.Read(ctx)
		if err != nil {
			return err
		}
		t.ID = sd.Header().ID
		if err := sd.Close(); err != nil {
			return err
		}
	}
	sender, err := s.sender(ctx, t.Store)
	if err != nil {
		return err
	}
	switch {
	case s.cancel:
		r, err := sender.Cancel(ctx, t.ID)
		return s.told(err, func() error { return s.tellCancel(r) })
	case s.questions:
		qs, err := sender.Questions(ctx, t.ID)
		return s.told(err, func() error { return s.tellQuestions(t.ID, qs) })
	case s.allow != "" || s.refuse != "":
		return s.decide(ctx, sender, t, args[1:])
	}
	m, err := s.message(ctx, t.Store, args[1:])
	if err != nil {
		return err
	}
	r, err := sender.Send(ctx, t.ID, m, s.steer)
	return s.told(s.hinted(err, m.ID), func() error { return s.tellReceipt(r) })
}

// begin makes a session for the input.
func (s *sending) begin(ctx context.Context, args []string) error {
	st, err := s.a.OpenStore()
	if err != nil {
		return err
	}
	defer st.Close()
	sender, err := s.sender(ctx, st)
	if err != nil {
		return err
	}
	dir, err := s.a.Workspace()
	if err != nil {
		return err
	}
	m, err := s.message(ctx, st, args)
	if err != nil {
		return err
	}
	id := s.session
	if id == "" {
		id = s.a.Env.NewID()
	}
	r, err := sender.Begin(ctx, outcrop.NewHeader(id, s.a.Now(), dir), m)
	return s.told(s.hinted(err, m.ID), func() error { return s.tellReceipt(r) })
}

func (s *sending) sender(ctx context.Context, st store.Store) (*worker.Sender, error) {
	bus, err := worker.BusOf(ctx, st)
	if err != nil {
		return nil, err
	}
	return &worker.Sender{Store: st, Bus: bus, Name: s.a.Env.Program + " send", Logger: s.a.Logger,
		Options: store.Options{Session: outcrop.Options{Now: s.a.Now, NewID: s.a.Env.NewID, Logger: s.a.Logger}}}, nil
}

// message is the input.
func (s *sending) message(ctx context.Context, st store.Store, words []string) (message.Message, error) {
	text, err := run.Prompt(s.a.Desk, words)
	if err != nil {
		return message.Message{}, err
	}
	m := message.Message{ID: s.id, Role: message.User, Source: message.FromUser}
	if text != "" {
		m.Content = append(m.Content, message.Text(text))
	}
	here, err := s.a.WorkingDir()
	if err != nil {
		return m, err
	}
	for _, name := range s.attach {
		path := name
		if !filepath.IsAbs(name) {
			path = filepath.Join(here, name)
		}
		blocks, err := attach.File(ctx, store.ObjectsOf(st), path, name)
		if err != nil {
			return m, exit.Misuse(err)
		}
		m.Content = append(m.Content, blocks...)
	}
	if len(m.Content) == 0 {
		return m, exit.Usagef("nothing to send: give TEXT")
	}
	if m.ID == "" {
		m.ID = s.a.Env.NewID()
	}
	return m, nil
}

func (s *sending) decide(ctx context.Context, sender *worker.Sender, t *desk.Target, words []string) error {
	reason := ""
	if s.refuse != "" && len(words) > 0 {
		var err error
		if reason, err = run.Prompt(s.a.Desk, words); err != nil {
			return err
		}
	}
	call := s.allow + s.refuse
	r, err := sender.Decide(ctx, t.ID, call, s.allow != "", reason)
	return s.told(err, func() error {
		if s.a.Flags.JSON {
			return s.a.Line(answer.New().Text("session", r.Session).Text("call", call).Bool("allowed", s.allow != "").TextOrNull("by", r.By).End())
		}
		what := "refused"
		if s.allow != "" {
			what = "allowed"
		}
		s.a.Text(fmt.Sprintf("%s: %s %s\n", term.Line(r.Session), term.Line(call), what))
		return nil
	})
}

// told tells what came of it, or gives the error its exit code.
func (s *sending) told(err error, tell func() error) error {
	switch {
	case err == nil:
		return tell()
	case errors.Is(err, worker.ErrRefused), errors.Is(err, agent.ErrInput), errors.Is(err, agent.ErrInboxFull):
		return exit.With(1, err)
	case errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, store.ErrLocked):
		return exit.With(1, err)
	}
	return err
}

// hinted says how an input whose fate is not known is sent again.
func (s *sending) hinted(err error, id string) error {
	if err == nil || s.id != "" || errors.Is(err, worker.ErrRefused) || errors.Is(err, agent.ErrInput) ||
		errors.Is(err, agent.ErrInboxFull) || errors.Is(err, outcrop.ErrNotFound) || exit.Code(err) != 1 {
		return err
	}
	return fmt.Errorf("%w: it may be stored or not: with --id %s it can be sent again and is there once", err, term.Word(id))
}

func (s *sending) tellReceipt(r worker.Receipt) error {
	if s.a.Flags.JSON {
		return s.a.Line(answer.New().Text("session", r.Session).Text("message", r.Message).Number("seq", int64(r.Seq)).
			Bool("known", r.Known).TextOrNull("by", r.By).End())
	}
	was := "is"
	if r.Known {
		was = "was there before, it is"
	}
	s.a.Text(fmt.Sprintf("%s: message %s %s event %d\n", term.Line(r.Session), term.Line(r.Message), was, r.Seq))
	return nil
}

func (s *sending) tellCancel(r worker.Receipt) error {
	if s.a.Flags.JSON {
		return s.a.Line(answer.New().Text("session", r.Session).Bool("canceled", r.Canceled).Number("dropped", int64(r.Dropped)).
			TextOrNull("by", r.By).End())
	}
	turn := "no turn was running"
	if r.Canceled {
		turn = "the turn ends"
	}
	s.a.Text(fmt.Sprintf("%s: %s, %s dropped\n", term.Line(r.Session), turn, term.Plural(int64(r.Dropped), "pending message")))
	return nil
}

func (s *sending) tellQuestions(session string, qs []worker.Question) error {
	if len(qs) == 0 && !s.a.Flags.JSON {
		s.a.Note("no call of %s waits for approval", term.Line(session))
	}
	for _, q := range qs {
		if s.a.Flags.JSON {
			err := s.a.Line(answer.New().Text("session", session).Text("call", q.CallID).Text("id", q.ID).Text("tool", q.Tool).Text("class", q.Class).
				Text("arguments", q.Arguments).Text("title", q.Title).Text("preview", q.Body).TextOrNull("dir", q.Dir).End())
			if err != nil {
				return err
			}
			continue
		}
		s.a.Text(fmt.Sprintf("%s  %s %s\n", term.Line(q.CallID), term.Line(q.Tool), brief.Call(q.Arguments)))
		if q.Body != "" {
			s.a.Text(term.Text(q.Body) + "\n")
		}
	}
	return nil
}
