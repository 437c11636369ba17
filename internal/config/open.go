package config

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os/exec"
	"strings"
	"time"

	"github.com/outcrop-dev/outcrop/llm"
	"github.com/outcrop-dev/outcrop/llm/openai"
)

// Dial is what clients need from outside.
type Dial struct {
	Logger *slog.Logger
	Now    func() time.Time
}

// Open makes the client of a model's provider. Its key is read now: from the
// variable, or from the program that prints it.
func (c *Config) Open(ctx context.Context, p *Provider, d Dial) (llm.Provider, error) {
	cl, err := c.Client(ctx, p, d)
	if err != nil {
		return nil, err
	}
	return cl, nil
}

// Client is Open for callers that also list models or encode bodies.
func (c *Config) Client(ctx context.Context, p *Provider, d Dial) (*openai.Provider, error) {
	if p.Kind != KindOpenAI {
		return nil, errNoClient(p)
	}
	key, from, err := c.key(ctx, p)
	if err != nil {
		return nil, err
	}
	return openai.New(openai.Options{Name: p.Name, BaseURL: p.BaseURL, Key: key, KeyFrom: from, Quirks: p.Quirks, Logger: d.Logger, Now: d.Now})
}

// Encoder is the provider's encoder alone: it has no key and calls nobody.
func (p *Provider) Encoder() (*openai.Provider, error) {
	if p.Kind != KindOpenAI {
		return nil, errNoClient(p)
	}
	return openai.New(openai.Options{Name: p.Name, BaseURL: p.BaseURL, Quirks: p.Quirks})
}

func errNoClient(p *Provider) error {
	return fmt.Errorf("%s: this version has no client for Anthropic's API: choose a provider of kind openai (outcrop models lists them), or --script FILE", p.Name)
}

// keyTimeout is how long a key_command may take: it may ask a person.
const keyTimeout = 2 * time.Minute

func (c *Config) key(ctx context.Context, p *Provider) (key, from string, err error) {
	switch {
	case len(p.KeyCommand) > 0:
		key, err = runKeyCommand(ctx, p)
		return key, "key_command", err
	case p.KeyEnv != "":
		if key = strings.TrimSpace(c.env.Getenv(p.KeyEnv)); key == "" {
			return "", "", fmt.Errorf("%s: no key: set %s, or key_command in %s", p.Name, p.KeyEnv, c.fileName())
		}
		return key, p.KeyEnv, nil
	}
	return "", "", nil
}

// runKeyCommand runs the program and takes the first line that it prints. What
// it prints is never part of an error.
func runKeyCommand(ctx context.Context, p *Provider) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, keyTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, p.KeyCommand[0], p.KeyCommand[1:]...)
	cmd.WaitDelay = time.Second
	out, err := cmd.Output()
	name := p.KeyCommand[0]
	switch {
	case errors.Is(err, exec.ErrNotFound):
		return "", fmt.Errorf("%s: key_command: there is no program %s", p.Name, name)
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return "", fmt.Errorf("%s: key_command: %s did not end within %s", p.Name, name, keyTimeout)
	case ctx.Err() != nil:
		return "", ctx.Err()
	case err != nil:
		var ee *exec.ExitError
		if errors.As(err, &ee) {
			return "", fmt.Errorf("%s: key_command: %s ended with %s", p.Name, name, ee.ProcessState)
		}
		return "", fmt.Errorf("%s: key_command: %w", p.Name, err)
	}
	line, _, _ := bytes.Cut(out, []byte("\n"))
	if key := string(bytes.TrimSpace(line)); key != "" {
		return key, nil
	}
	return "", fmt.Errorf("%s: key_command: %s printed no key", p.Name, name)
}
