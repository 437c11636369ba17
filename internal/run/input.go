package run

import (
	"io"
	"strings"
	"unicode/utf8"

	"github.com/outcrop-dev/outcrop/internal/exit"
	"github.com/outcrop-dev/outcrop/internal/work"
)

// readPrompt takes the prompt from the arguments or, when there are none and
// stdin is no terminal, from stdin.
func (r *run) readPrompt(args []string) error {
	stdin := len(args) == 1 && args[0] == "-"
	switch {
	case len(args) > 0 && !stdin:
		r.prompt = strings.Join(args, " ")
	case stdin || !r.a.Env.Terminal(r.a.Env.Stdin):
		b, err := io.ReadAll(io.LimitReader(r.a.Env.Stdin, work.MaxInput+1))
		if err != nil {
			return exit.Usagef("the prompt cannot be read from stdin: %v", err)
		}
		if len(b) > work.MaxInput {
			return exit.Usagef("the prompt on stdin is longer than 8 MiB: put it into a file and name the file in the prompt")
		}
		r.prompt = strings.TrimRight(string(b), "\r\n")
	}
	if strings.TrimSpace(r.prompt) == "" {
		r.prompt = ""
		if r.flags.Session == "" && len(r.attach) == 0 {
			return nothingToDo()
		}
	}
	if !utf8.ValidString(r.prompt) {
		return exit.Usagef("the prompt is not UTF-8 text")
	}
	return nil
}
