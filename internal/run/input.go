package run

import (
	"io"
	"io/fs"
	"os"
	"strings"
	"unicode/utf8"

	"github.com/outcrop-dev/outcrop/internal/desk"
	"github.com/outcrop-dev/outcrop/internal/exit"
	"github.com/outcrop-dev/outcrop/internal/work"
)

// readPrompt takes the prompt, which a new session needs.
func (r *run) readPrompt(args []string) (err error) {
	if r.prompt, err = Prompt(r.a, args); err != nil {
		return err
	}
	if r.prompt == "" && r.flags.Session == "" && len(r.attach) == 0 {
		return nothingToDo()
	}
	return nil
}

// Prompt takes a prompt from the arguments and, where a last argument - asks for
// it or there are none and stdin is no terminal, from stdin. Beside a prompt stdin
// is not read by itself: whoever started this program may have left a pipe open
// into which nothing is ever written. "" when there is none.
func Prompt(a *desk.Desk, args []string) (string, error) {
	n := len(args)
	stdin := n > 0 && args[n-1] == "-"
	if stdin {
		n--
	}
	prompt := strings.Join(args[:n], " ")
	switch {
	case stdin || n == 0 && !a.Env.Terminal(a.Env.Stdin):
		b, err := io.ReadAll(io.LimitReader(a.Env.Stdin, work.MaxInput+1))
		if err != nil {
			return "", exit.Usagef("the prompt cannot be read from stdin: %v", err)
		}
		if len(b) > work.MaxInput {
			return "", exit.Usagef("the prompt on stdin is longer than 8 MiB: put it into a file and name the file in the prompt")
		}
		more := strings.TrimRight(string(b), "\r\n")
		if strings.TrimSpace(more) != "" && prompt != "" {
			prompt += "\n\n"
		}
		prompt += more
	case n > 0 && brings(a.Env.Stdin):
		a.Note("stdin is not read: a last word - puts it behind the prompt")
	}
	if strings.TrimSpace(prompt) == "" {
		return "", nil
	}
	if !utf8.ValidString(prompt) {
		return "", exit.Usagef("the prompt is not UTF-8 text")
	}
	return prompt, nil
}

// brings reports that stdin is a pipe or a file, so that somebody may have meant
// it. It reads nothing.
func brings(stdin io.Reader) bool {
	f, ok := stdin.(*os.File)
	if !ok {
		return false
	}
	fi, err := f.Stat()
	return err == nil && (fi.Mode()&fs.ModeNamedPipe != 0 || fi.Mode().IsRegular() && fi.Size() > 0)
}
