package run

import (
	"io"
	"io/fs"
	"os"
	"strings"
	"unicode/utf8"

	"github.com/outcrop-dev/outcrop/internal/exit"
	"github.com/outcrop-dev/outcrop/internal/work"
)

// readPrompt takes the prompt from the arguments and, where a last argument -
// asks for it or there are none and stdin is no terminal, from stdin. Beside a
// prompt stdin is not read by itself: whoever started this program may have left
// a pipe open into which nothing is ever written.
func (r *run) readPrompt(args []string) error {
	n := len(args)
	stdin := n > 0 && args[n-1] == "-"
	if stdin {
		n--
	}
	r.prompt = strings.Join(args[:n], " ")
	switch {
	case stdin || n == 0 && !r.a.Env.Terminal(r.a.Env.Stdin):
		b, err := io.ReadAll(io.LimitReader(r.a.Env.Stdin, work.MaxInput+1))
		if err != nil {
			return exit.Usagef("the prompt cannot be read from stdin: %v", err)
		}
		if len(b) > work.MaxInput {
			return exit.Usagef("the prompt on stdin is longer than 8 MiB: put it into a file and name the file in the prompt")
		}
		more := strings.TrimRight(string(b), "\r\n")
		if strings.TrimSpace(more) != "" && r.prompt != "" {
			r.prompt += "\n\n"
		}
		r.prompt += more
	case n > 0 && brings(r.a.Env.Stdin):
		r.a.Note("stdin is not read: a last word - puts it behind the prompt")
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
