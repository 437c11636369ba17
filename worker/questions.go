package worker

import (
	"context"
	"slices"
	"sync"

	"github.com/outcrop-dev/outcrop/agent"
	"github.com/outcrop-dev/outcrop/llm"
)

// questions are the calls of one session that wait for somebody's approval, who
// may be anywhere. It is an agent.Approver.
type questions struct {
	mu   sync.Mutex
	open []*waitingQuestion
	slot func(n int) // a session that waits for an answer holds no slot
}

type waitingQuestion struct {
	agent.Question
	answer chan agent.Answer
}

// Approve implements agent.Approver.
func (q *questions) Approve(ctx context.Context, ask agent.Question) (agent.Answer, error) {
	it := &waitingQuestion{ask, make(chan agent.Answer, 1)}
	q.mu.Lock()
	q.open = append(q.open, it)
	q.mu.Unlock()
	q.slot(-1)
	defer q.slot(1)
	select {
	case a := <-it.answer:
		return a, nil
	case <-ctx.Done():
		q.take(func(o *waitingQuestion) bool { return o == it })
		return agent.Answer{}, context.Cause(ctx)
	}
}

// take removes the first question that fits, nil when none does.
func (q *questions) take(fits func(*waitingQuestion) bool) *waitingQuestion {
	q.mu.Lock()
	defer q.mu.Unlock()
	i := slices.IndexFunc(q.open, fits)
	if i < 0 {
		return nil
	}
	it := q.open[i]
	q.open = slices.Delete(q.open, i, i+1)
	return it
}

// decide answers a question by its id or that of its call; false when it does not
// wait.
func (q *questions) decide(id string, a agent.Answer) bool {
	it := q.take(func(o *waitingQuestion) bool { return o.ID == id || o.CallID == id })
	if it == nil {
		return false
	}
	it.answer <- a
	return true
}

// waiting reports whether a question waits.
func (q *questions) waiting() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.open) > 0
}

// list shows the questions.
func (q *questions) list() []Question {
	q.mu.Lock()
	defer q.mu.Unlock()
	out := make([]Question, 0, len(q.open))
	for _, it := range q.open {
		out = append(out, Question{ID: llm.Clean(it.ID), CallID: llm.Clean(it.CallID), Tool: llm.Clean(it.Tool), Class: string(it.Class),
			Arguments: llm.Clean(it.Arguments), Title: llm.Clean(it.Preview.Title), Body: llm.Clean(it.Preview.Body), Dir: llm.Clean(it.Preview.Dir)})
	}
	return out
}
