package agent_test

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/agent"
	"github.com/outcrop-dev/outcrop/internal/cputime"
	"github.com/outcrop-dev/outcrop/llm"
	"github.com/outcrop-dev/outcrop/message"
	"github.com/outcrop-dev/outcrop/store"
	"github.com/outcrop-dev/outcrop/store/jsonl"
	"github.com/outcrop-dev/outcrop/store/memory"
	"github.com/outcrop-dev/outcrop/tool"
	"github.com/outcrop-dev/outcrop/workspace"
)

// benchLive is a session in a store that keeps nothing on a disk.
func benchLive(b *testing.B) *store.Live {
	b.Helper()
	live, err := store.Create(context.Background(), memory.New(), ownHeader(), store.Options{})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { live.Close(context.Background()) })
	return live
}

// stepOf60 streams a reply that, with what the loop adds, makes a step of 60
// events: text in pieces and one call.
func stepOf60(req llm.Request, yield func(message.Chunk, error) bool) {
	ok := yield(message.Chunk{Type: message.BlockStart, BlockType: message.TextBlock}, nil)
	for i := 0; ok && i < 48; i++ {
		ok = yield(message.Chunk{Type: message.TextDelta, Text: "some words of "}, nil)
	}
	id := fmt.Sprintf("call_%d_%d", req.Turn, req.Step)
	call := message.ToolCall(id, "look", `{"x":"notes.txt"}`)
	for _, c := range []message.Chunk{
		{Type: message.BlockStart, Index: 1, BlockType: message.ToolCallBlock},
		{Type: message.ToolCallDelta, Index: 1, ID: id, Name: "look", Text: `{"x":"notes.txt"}`},
		{Type: message.BlockEnd, Index: 1, Block: &call},
		{Type: message.UsageChunk, Usage: &message.Usage{InputTokens: 1000, OutputTokens: 100}},
		{Type: message.FinishChunk, Reason: &message.Finish{Kind: message.ToolCalls}},
	} {
		ok = ok && yield(c, nil)
	}
}

func benchTools(b *testing.B) *tool.Registry {
	b.Helper()
	look := &fakeTool{name: "look", class: tool.Read, parallel: true, run: func(context.Context, tool.Call) (tool.Result, error) {
		return tool.Text("alpha beta gamma"), nil
	}}
	tools := []tool.Tool{look}
	for i := range 11 {
		tools = append(tools, &fakeTool{name: fmt.Sprintf("other_%d", i), class: tool.Read})
	}
	r, err := tool.NewRegistry(tool.Options{}, tools...)
	if err != nil {
		b.Fatal(err)
	}
	return r
}

// A step of 60 events without the model, flushes and all: 0.2 ms at most,
// however many steps were before. The loop alone has a live session that writes
// nothing; the rest is the store's.
func BenchmarkStep(b *testing.B) {
	for _, n := range []int{100, 1000, 10000} {
		b.Run(fmt.Sprintf("alone/%d steps", n), func(b *testing.B) {
			benchSteps(b, n, func() agent.Live { return newLive(b, ownHeader(), outcrop.Options{}) })
		})
		b.Run(fmt.Sprintf("memory store/%d steps", n), func(b *testing.B) {
			benchSteps(b, n, func() agent.Live { return benchLive(b) })
		})
	}
}

func benchSteps(b *testing.B, n int, open func() agent.Live) {
	var total, last time.Duration
	steps, cpu := 0, cputime.Used()
	for b.Loop() {
		live := open()
		var mark, begun time.Time
		p := streamFunc(func(_ context.Context, req llm.Request, yield func(message.Chunk, error) bool) {
			if req.Step == 1 {
				begun = time.Now()
			}
			if req.Step == n-99 {
				mark = time.Now()
			}
			if req.Step > n {
				last += time.Since(mark)
				total += time.Since(begun)
				return
			}
			stepOf60(req, yield)
		})
		a, err := agent.New(agent.Options{Live: live, Provider: p, Config: llm.Config{Model: "m"}, Tools: benchTools(b), Window: 1 << 40})
		if err != nil {
			b.Fatal(err)
		}
		steps += n
		if _, err := a.Send(context.Background(), said("Go.")); err != nil {
			b.Fatal(err)
		}
		if out, err := a.Wait(context.Background()); err != nil || out.Reason.Kind != outcrop.Completed {
			b.Fatal(out, err)
		}
		if got := live.Session().Len(); got < 60*n || got > 60*n+20 {
			b.Fatalf("%d events", got)
		}
		a.Close(context.Background())
	}
	b.ReportMetric(float64(total.Nanoseconds())/float64(steps), "ns/step")
	b.ReportMetric(float64(last.Nanoseconds())/float64(100*steps/n), "ns/late-step")
	b.ReportMetric(float64((cputime.Used()-cpu).Nanoseconds())/float64(steps), "cpu-ns/step")
	b.ReportMetric(0, "ns/op")
}

// From the last result of a tool to the call of the provider, in a session of
// 16,000 messages and with contexts to look for at each step: 2 ms at most.
func BenchmarkNextRequest(b *testing.B) {
	live := benchLive(b)
	s := live.Session()
	for i := 0; i < 16000; i += 2 {
		group := []outcrop.Candidate{
			outcrop.SurfaceCandidate(outcrop.UserMessage{Message: message.Message{ID: fmt.Sprintf("u%d", i), Role: message.User, Source: message.FromUser,
				Content: []message.Block{message.Text("What does the next file say about the deployment?")}}}, outcrop.Tail, outcrop.NoSources),
			outcrop.SurfaceCandidate(outcrop.AssistantMessage{Turn: 1, Step: 1, Message: message.Message{Role: message.Assistant, Source: message.FromModel("fake", "m"),
				Content: []message.Block{message.Text("It says that the deployment is done by the release job, and that nobody does it by hand.")}}}, outcrop.Tail, outcrop.SourcesOf()),
		}
		if _, err := s.AppendAll(group...); err != nil {
			b.Fatal(err)
		}
	}
	var ended time.Time
	var waits []time.Duration
	look := &fakeTool{name: "look", class: tool.Read, run: func(context.Context, tool.Call) (tool.Result, error) {
		ended = time.Now()
		return tool.Text("alpha beta gamma"), nil
	}}
	r, err := tool.NewRegistry(tool.Options{}, look)
	if err != nil {
		b.Fatal(err)
	}
	more := true
	p := streamFunc(func(_ context.Context, req llm.Request, yield func(message.Chunk, error) bool) {
		if req.Step > 1 {
			waits = append(waits, time.Since(ended))
		}
		if len(req.Messages) < 16000 {
			b.Error("messages are missing")
		}
		if more = b.Loop(); more {
			stepOf60(req, yield)
		}
	})
	o := agent.Options{Live: live, Provider: p, Config: llm.Config{Model: "m"}, Tools: r, Window: 1 << 40}
	with(contribute(func(context.Context, agent.Stage) ([]workspace.Context, error) {
		return []workspace.Context{{Name: "runtime", Text: "It is monday."}, {Name: "instructions", Text: "Be short."}}, nil
	}))(&o)
	a, err := agent.New(o)
	if err != nil {
		b.Fatal(err)
	}
	if _, err := a.Send(context.Background(), said("Go.")); err != nil {
		b.Fatal(err)
	}
	if _, err := a.Wait(context.Background()); err != nil {
		b.Fatal(err)
	}
	a.Close(context.Background())
	slices.Sort(waits)
	b.ReportMetric(float64(waits[len(waits)/2].Nanoseconds()), "ns/median")
	b.ReportMetric(float64(waits[len(waits)*99/100].Nanoseconds()), "ns/p99")
}

// 1,000 sessions in one process, each streaming 50 chunks a second into a store
// on a disk: less than one core, 150 KB a session, and 5 ms from the chunk to
// the observer for 99 of 100.
func BenchmarkThousandSessions(b *testing.B) {
	const sessions, chunksPerSecond = 1000, 50
	lasting := 8 * time.Second
	ctx := context.Background()
	for range b.N {
		before := heap()
		st, err := jsonl.New(b.TempDir(), jsonl.Options{})
		if err != nil {
			b.Fatal(err)
		}
		var mu sync.Mutex
		delays := make([]time.Duration, 0, sessions*chunksPerSecond*10)
		var lives []*store.Live
		var agents []*agent.Agent
		for i := range sessions {
			h := outcrop.NewHeader(fmt.Sprintf("s%d", i), 1000, "/srv/demo")
			h.Outcrop = 1
			live, err := store.Create(ctx, st, h, store.Options{})
			if err != nil {
				b.Fatal(err)
			}
			sent := make(chan time.Time, 64)
			p := streamFunc(func(ctx context.Context, _ llm.Request, yield func(message.Chunk, error) bool) {
				// Sessions do not tick together.
				first := time.NewTimer(time.Duration(i) * time.Second / chunksPerSecond / sessions)
				<-first.C
				tick := time.NewTicker(time.Second / chunksPerSecond)
				defer tick.Stop()
				for {
					select {
					case <-tick.C:
					case <-ctx.Done():
						return
					}
					sent <- time.Now()
					if !yield(message.Chunk{Type: message.TextDelta, Text: "some words "}, nil) {
						return
					}
				}
			})
			a, err := agent.New(agent.Options{Live: live, Provider: p, Config: llm.Config{Model: "m"}})
			if err != nil {
				b.Fatal(err)
			}
			a.Observe(func(ev outcrop.Event) {
				if ev.Type == outcrop.TypeAssistantChunk {
					d := time.Since(<-sent)
					mu.Lock()
					delays = append(delays, d)
					mu.Unlock()
				}
			})
			lives, agents = append(lives, live), append(agents, a)
			if _, err := a.Send(ctx, said("Go.")); err != nil {
				b.Fatal(err)
			}
		}
		time.Sleep(time.Second)
		mu.Lock()
		delays = delays[:0]
		mu.Unlock()
		cpu, begun := cputime.Used(), time.Now()
		time.Sleep(lasting)
		used, took := cputime.Used()-cpu, time.Since(begun)
		held := heap() - before - uint64(cap(delays))*8
		mu.Lock()
		slices.Sort(delays)
		n := len(delays)
		b.ReportMetric(float64(n)/took.Seconds(), "chunks/s")
		b.ReportMetric(used.Seconds()/took.Seconds(), "cores")
		b.ReportMetric(float64(held)/sessions/1000, "KB/session")
		b.ReportMetric(float64(delays[n*99/100].Microseconds())/1000, "ms/p99")
		b.ReportMetric(float64(delays[n/2].Microseconds())/1000, "ms/median")
		mu.Unlock()
		for i, a := range agents {
			a.Close(ctx)
			lives[i].Close(ctx)
		}
		st.Close()
	}
}

// What an idle agent holds beside its session, and how many goroutines: it is
// one, which waits.
func BenchmarkIdleAgent(b *testing.B) {
	const n = 1000
	ctx := context.Background()
	for range b.N {
		lives := make([]*memoryLive, n)
		for i := range lives {
			lives[i] = newLive(b, ownHeader(), outcrop.Options{})
		}
		before, goroutines := heap(), runtime.NumGoroutine()
		agents := make([]*agent.Agent, n)
		for i := range agents {
			a, err := agent.New(agent.Options{Live: lives[i], Provider: plays(), Config: llm.Config{Model: "m"}})
			if err != nil {
				b.Fatal(err)
			}
			agents[i] = a
		}
		b.ReportMetric(float64(heap()-before)/n/1000, "KB/new")
		for _, a := range agents {
			ask(b, a, "Hi.")
		}
		b.ReportMetric(float64(heap()-before)/n/1000, "KB/after-a-turn")
		b.ReportMetric(float64(runtime.NumGoroutine()-goroutines)/n, "goroutines")
		for _, a := range agents {
			a.Close(ctx)
		}
	}
}

func heap() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
