package history_test

import (
	"context"
	"crypto/sha256"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/history"
	"github.com/outcrop-dev/outcrop/internal/jsonwire"
	"github.com/outcrop-dev/outcrop/llm"
	"github.com/outcrop-dev/outcrop/message"
)

// world plays a long session: a model that calls tools, a summariser, and a
// provider's cache that keeps the last requests.
type world struct {
	t      testing.TB
	b      *builder
	m      *history.Manager
	rnd    *rand.Rand
	window int64

	parsed  map[*outcrop.Message]llm.Node
	known   map[*message.Block]mark // of messages, by their content
	build   llm.Builder
	recent  [][]mark // of the last requests: what each of their messages ends a prefix of
	prompts int64    // tokens of all requests
	cached  int64    // the part that was read from the cache
	written int64    // tokens that the summariser wrote
	calls   int
	largest int64 // request
	edits   int
	layers  bool
	deepest int // level
	step    int
	turn    int
}

type mark struct {
	prefix [sha256.Size]byte
	tokens int64
}

const (
	worldSystem = "You are a careful assistant. "
	worldOutput = 4096
)

func newWorld(t testing.TB, policy history.Policy, window int64, seed uint64) *world {
	w := &world{t: t, rnd: rand.New(rand.NewPCG(seed, 1)), window: window, layers: policy == history.Layers, parsed: map[*outcrop.Message]llm.Node{}, known: map[*message.Block]mark{}}
	w.b = build(t, outcrop.Options{})
	w.m = manager(t, history.Options{Policy: policy, Window: window, MaxOutput: worldOutput, Provider: provider(w.summarize)})
	return w
}

func (w *world) words(tokens int) string {
	var s strings.Builder
	for s.Len() < tokens*4 {
		fmt.Fprintf(&s, "w%06x ", w.rnd.IntN(1<<24))
	}
	return s.String()
}

// account puts a request through the cache and returns its usage.
func (w *world) account(req llm.Request) *message.Usage {
	var h [sha256.Size]byte
	total := llm.EstimateHeader(req.System, req.Tools)
	marks := []mark{{h, total}}
	for i := range req.Messages {
		m := &req.Messages[i]
		known, ok := w.known[&m.Content[0]]
		if !ok {
			known = mark{sha256.Sum256(m.AppendJSON(nil)), llm.EstimateTokens(*m)}
			w.known[&m.Content[0]] = known
		}
		h = sha256.Sum256(append(h[:], known.prefix[:]...))
		total += known.tokens
		marks = append(marks, mark{h, total})
	}
	var read int64
	for _, old := range w.recent {
		for i := 0; i < min(len(old), len(marks)) && old[i].prefix == marks[i].prefix; i++ {
			read = max(read, marks[i].tokens)
		}
	}
	if w.recent = append(w.recent, marks); len(w.recent) > 4 {
		w.recent = w.recent[1:]
	}
	w.prompts += total
	w.cached += read
	w.largest = max(w.largest, total)
	return &message.Usage{InputTokens: total - read, CacheReadTokens: &read}
}

// summarize answers as a faithful model would: a tenth of raw text, and nine
// tenths of summaries, which it was told to keep; up to its limit.
func (w *world) summarize(_ context.Context, req llm.Request, yield func(message.Chunk, error) bool) {
	w.calls++
	usage := w.account(req)
	ask := req.Messages[len(req.Messages)-1]
	text := message.PlainText(ask.Content)
	from := len(req.Messages)
	if at := strings.IndexByte(text, '"'); at >= 0 {
		quoted, err := strconv.QuotedPrefix(text[at:])
		if err != nil {
			w.t.Fatal(err)
		}
		begins, _ := strconv.Unquote(quoted)
		begins = strings.TrimSuffix(begins, "…")
		for i := range req.Messages {
			if strings.Contains(message.PlainText(req.Messages[i].Content), begins) {
				from = i
				break
			}
		}
	}
	if from >= len(req.Messages)-1 {
		w.t.Fatalf("the instruction does not say where the range begins: %.120s", text)
	}
	var n int64
	for _, m := range req.Messages[from : len(req.Messages)-1] {
		if m.Source.Plugin == "compact" {
			n += llm.EstimateTokens(m) * 9 / 10
		} else {
			n += llm.EstimateTokens(m) / 10
		}
	}
	n = min(n, req.MaxOutput)
	w.written += n
	usage.OutputTokens = n
	say(yield, message.Stop, usage, message.Text(w.words(int(n)-8)))
}

// checkLevels holds neighbouring checkpoints against the rule that levels never
// rise from head to tail.
func (w *world) checkLevels() {
	last := 0
	for _, seq := range w.b.s.Surface().Nodes() {
		ev := w.b.s.Log().At(seq)
		level := 0
		if _, _, replace := ev.Op.Range(); replace && ev.Type == outcrop.TypeUserMessage {
			n, _ := jsonwire.Int(jsonwire.Get(w.b.s.Log().At(seq-1).Data, "level"))
			level = int(n)
		}
		if level > last && last > 0 {
			w.t.Fatalf("a checkpoint of level %d stands behind one of level %d", level, last)
		}
		last = level
		w.deepest = max(w.deepest, level)
	}
}

// play runs one step.
func (w *world) play(first bool) {
	t, ctx, ed := w.t, context.Background(), history.Direct(w.b.s)
	var in history.Input
	if first {
		w.turn++
		w.step = 0
		w.b.openTurn(w.turn)
		in.Claimed = []message.Message{{Role: message.User, Source: message.FromUser, Content: []message.Block{message.Text(fmt.Sprintf("Prompt %d: %s", w.turn, w.words(20+w.rnd.IntN(200))))}}}
	}
	rep, err := w.m.PreStep(ctx, ed, in)
	if err != nil || rep.Err != nil {
		t.Fatalf("turn %d step %d: %v, %v", w.turn, w.step, err, rep.Err)
	}
	if rep.Notice != "" {
		t.Fatalf("turn %d step %d: %s", w.turn, w.step, rep.Notice)
	}
	if w.edits += len(rep.Edits); len(rep.Edits) > 0 && w.layers {
		w.checkLevels()
	}
	w.step++
	w.b.openStep(w.turn, w.step)
	for _, m := range in.Claimed {
		w.b.must(w.b.s.AppendSurface(outcrop.UserMessage{Message: m}, outcrop.Tail, outcrop.NoSources))
	}
	if w.turn == 1 && w.step == 1 {
		system := strings.Repeat(worldSystem, 40)
		w.b.log(outcrop.RequestHeader{Reason: "initial", Header: llm.HeaderJSON(llm.Config{Provider: "p", Model: "m"}, system,
			[]llm.Tool{{Name: "read", Description: "reads"}, {Name: "history_read", Description: "shows originals"}})})
	}
	prefix := outcrop.Seq(w.b.s.Len() - 1)
	req := w.request()
	w.b.log(outcrop.OutcropRequest{Turn: w.turn, Step: w.step, Attempt: 1, Purpose: "turn", Prefix: prefix, Digest: w.b.s.RequestDigest(), Encoder: "e/1"})
	usage := w.account(req)
	blocks := []message.Block{message.Text(fmt.Sprintf("Step %d of turn %d. %s", w.step, w.turn, w.words(20+w.rnd.IntN(150))))}
	var ids []string
	for i := range w.rnd.IntN(3) {
		id := fmt.Sprintf("c%d_%d_%d", w.turn, w.step, i)
		ids = append(ids, id)
		blocks = append(blocks, w.b.call(id))
	}
	usage.OutputTokens = llm.EstimateBlocks(blocks)
	w.b.must(w.b.s.AppendSurface(outcrop.AssistantMessage{Turn: w.turn, Step: w.step, Usage: usage,
		Message: message.Message{Content: blocks, Source: message.FromModel("p", "m")}}, outcrop.Tail, outcrop.EmptySources))
	for _, id := range ids {
		size := 20 + w.rnd.IntN(600)
		if w.rnd.IntN(40) == 0 {
			size = 3000 + w.rnd.IntN(1500)
		}
		w.b.result(w.turn, w.step, id, w.words(size))
	}
	w.b.closeStep(w.turn, w.step)
}

// request is the conversation's next request.
func (w *world) request() llm.Request {
	h, _ := w.b.s.RequestHeader()
	cfg, system, tools, err := llm.ParseHeader(h.Raw)
	if err != nil {
		w.t.Fatal(err)
	}
	var nodes []llm.Node
	for _, m := range w.b.s.Messages() {
		n, ok := w.parsed[m]
		if !ok {
			parsed, err := message.Parse(m.Raw)
			if err != nil {
				w.t.Fatal(err)
			}
			n = llm.Node{Seq: int64(m.Seq), Message: parsed}
			w.parsed[m] = n
		}
		nodes = append(nodes, n)
	}
	return llm.Request{Config: cfg, System: system, Tools: tools, Messages: w.build.Build(nodes)}
}

// A session of thousands of steps stays under a small window to its end, and
// the policy layers writes less and keeps more of the cache than dsh.
func TestALongSessionStaysUnderItsWindow(t *testing.T) {
	steps := 5000
	if testing.Short() {
		steps = 600
	}
	const window = 32_000
	run := func(policy history.Policy, turnLength int) *world {
		w := newWorld(t, policy, window, 7)
		for i := range steps {
			w.play(i%turnLength == 0)
			if i%turnLength == turnLength-1 || i == steps-1 {
				w.b.closeTurn(w.turn)
			}
		}
		if w.largest > window {
			t.Errorf("%s: a request had %d tokens, the window has %d", policy, w.largest, window)
		}
		check(t, w.b.s)
		return w
	}
	for _, length := range []int{7, 200} {
		layers, dsh := run(history.Layers, length), run(history.DSH, length)
		share := func(w *world) float64 { return 100 * float64(w.cached) / float64(w.prompts) }
		t.Logf("%d steps in turns of %d, window %d:", steps, length, window)
		for i, w := range []*world{layers, dsh} {
			t.Logf("%-6s  the summariser wrote %7d tokens in %3d calls; %.2f %% of all prompt tokens came from the cache; largest request %d; %d edits; deepest level %d",
				[]string{"layers", "dsh"}[i], w.written, w.calls, share(w), w.largest, w.edits, w.deepest)
		}
		if layers.written >= dsh.written {
			t.Errorf("layers wrote %d tokens, dsh %d", layers.written, dsh.written)
		}
		if share(layers) <= share(dsh) {
			t.Errorf("layers read %.2f %% from the cache, dsh %.2f %%", share(layers), share(dsh))
		}
	}
}
