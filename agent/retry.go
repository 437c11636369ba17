package agent

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/message"
)

// RetryPolicy says which failed attempts are repeated, inside their step. The
// zero value is the usual policy.
type RetryPolicy struct {
	// Max is how many retries a step gets; default 5, below 0 none.
	Max int
	// Codes are the failure codes that a retry can help against; default
	// EMPTY_RESPONSE, RATE_LIMIT, SERVER, TIMEOUT, TRANSPORT.
	Codes []string
	// Initial is the first wait, doubled each time up to Longest; default
	// 500 ms and 10 s. A wait that the provider asks for is kept to exactly;
	// when it asks for more than Longest the failure stands.
	Initial, Longest time.Duration
	// Jitter changes a wait by up to this part of it, either way; default
	// 0.1, below 0 none.
	Jitter float64
}

func (p RetryPolicy) withDefaults() RetryPolicy {
	if p.Max == 0 {
		p.Max = 5
	}
	if p.Codes == nil {
		p.Codes = []string{message.CodeEmptyResponse, message.CodeRateLimit, message.CodeServer, message.CodeTimeout, message.CodeTransport}
	}
	p.Codes = slices.Sorted(slices.Values(p.Codes))
	if p.Initial <= 0 {
		p.Initial = 500 * time.Millisecond
	}
	if p.Longest <= 0 {
		p.Longest = 10 * time.Second
	}
	if p.Jitter == 0 {
		p.Jitter = 0.1
	}
	p.Jitter = min(max(p.Jitter, 0), 1)
	return p
}

// key names the policy in the log, as format version 0 does: a JSON text of
// ["normal", retries, codes, initial ms, longest ms, jitter].
func (p RetryPolicy) key() string {
	quoted := make([]string, len(p.Codes))
	for i, c := range p.Codes {
		quoted[i] = strconv.Quote(c)
	}
	return fmt.Sprintf(`["normal",%d,[%s],%d,%d,%s]`, p.Max, strings.Join(quoted, ","),
		p.Initial.Milliseconds(), p.Longest.Milliseconds(), strconv.FormatFloat(p.Jitter, 'g', -1, 64))
}

// delay is the wait before retry n, from 1; ok is false when there is none.
// random is in [0, 1).
func (p RetryPolicy) delay(n int, f *message.Failure, random float64) (d time.Duration, ok bool) {
	if n > p.Max || !slices.Contains(p.Codes, f.Code) {
		return 0, false
	}
	if f.RetryAfterMs > 0 {
		d = time.Duration(f.RetryAfterMs) * time.Millisecond
		return d, f.RetryAfterMs <= p.Longest.Milliseconds()
	}
	d = p.Initial
	for i := 1; i < n && d < p.Longest; i++ {
		d *= 2
	}
	d = min(d, p.Longest)
	d = time.Duration(float64(d) * (1 + p.Jitter*(2*random-1)))
	return min(d, p.Longest).Round(time.Millisecond), true
}

// retrying counts the retries of one step.
type retrying struct {
	n  int
	id string
}

// waitToRetry decides about a failed attempt and waits. It reports whether the
// attempt is to be repeated; an error is one of the log, or of the turn's
// context.
func (t *turn) waitToRetry(r *retrying, f *message.Failure) (bool, error) {
	a, p := t.a, t.a.o.Retry
	random := 0.5
	if a.o.Rand != nil {
		random = a.o.Rand()
	}
	d, ok := p.delay(r.n+1, f, random)
	if !ok {
		return false, nil
	}
	r.n++
	if r.id == "" {
		r.id = a.id("r", a.s.Len())
	}
	a.enterPhase(place{phase: Retrying, turn: t.n, step: t.step, attempt: r.n})
	_, err := a.s.Append(outcrop.LLMRetry{
		RetryID: r.id, Turn: t.n, Step: t.step, Provider: t.model.Config.Provider, PolicyKey: p.key(),
		Retry: r.n, MaxRetries: p.Max, DelayMs: d.Milliseconds(), Failure: f,
	})
	if err != nil {
		return false, err
	}
	timer := a.o.Clock.Timer(d)
	defer timer.Stop()
	if _, ok := await(a, t.ctx, timer.C()); !ok {
		return false, t.ctx.Err()
	}
	_, err = a.s.Append(outcrop.LLMRetryStarted{RetryID: r.id, Turn: t.n, Step: t.step, Retry: r.n})
	return err == nil, err
}
