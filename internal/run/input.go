package run

import (
	"fmt"
	"io"
	"os"
	"strings"
	"unicode/utf8"

	"github.com/outcrop-dev/outcrop/agent"
	"github.com/outcrop-dev/outcrop/internal/exit"
	"github.com/outcrop-dev/outcrop/internal/term"
	"github.com/outcrop-dev/outcrop/llm"
)

// maxInput is the longest prompt or system prompt, in bytes: what is longer is
// a file that was meant for something else.
const maxInput = 8 << 20

// readPrompt takes the prompt from the arguments or, when there are none and
// stdin is no terminal, from stdin.
func (r *run) readPrompt(args []string) error {
	stdin := len(args) == 1 && args[0] == "-"
	switch {
	case len(args) > 0 && !stdin:
		r.prompt = strings.Join(args, " ")
	case stdin || !r.a.Env.Terminal(r.a.Env.Stdin):
		b, err := io.ReadAll(io.LimitReader(r.a.Env.Stdin, maxInput+1))
		if err != nil {
			return exit.Usagef("the prompt cannot be read from stdin: %v", err)
		}
		if len(b) > maxInput {
			return exit.Usagef("the prompt on stdin is longer than 8 MiB: put it into a file and name the file in the prompt")
		}
		r.prompt = strings.TrimRight(string(b), "\r\n")
	}
	if strings.TrimSpace(r.prompt) == "" {
		r.prompt = ""
		if r.session == "" {
			return nothingToDo()
		}
	}
	if !utf8.ValidString(r.prompt) {
		return exit.Usagef("the prompt is not UTF-8 text")
	}
	return nil
}

// readSystem is the system prompt: ours, or the file of --system.
func (r *run) readSystem() (string, error) {
	if r.runFlags.system == "" {
		return strings.TrimSpace(agent.DefaultSystem), nil
	}
	name := "--system " + term.Line(r.runFlags.system)
	f, err := os.Open(r.a.Path(r.runFlags.system))
	if err != nil {
		return "", exit.With(2, fmt.Errorf("--system: %w", err))
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxInput+1))
	switch {
	case err != nil:
		return "", exit.With(2, fmt.Errorf("--system: %w", err))
	case len(b) > maxInput:
		return "", exit.Usagef("%s is longer than 8 MiB: that is no system prompt", name)
	case !utf8.Valid(b):
		return "", exit.Usagef("%s is not UTF-8 text", name)
	}
	return strings.TrimSpace(llm.Clean(string(b))), nil
}
