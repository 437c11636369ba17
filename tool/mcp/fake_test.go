package mcp

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"image"
	"image/png"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/outcrop-dev/outcrop/internal/jsonwire"
)

// The servers of these tests are this test binary, run again with the variable
// set: real programs, most of them made with the SDK.
const asServer = "OUTCROP_TEST_MCP_SERVER"

// asClient makes this test binary a client instead.
const asClient = "OUTCROP_TEST_MCP_CLIENT"

func TestMain(m *testing.M) {
	if os.Getenv(asClient) != "" && os.Getenv(asServer) == "" {
		// A program that has a stubborn server and is killed.
		set, errs := Connect(context.Background(), []Server{program("stubborn", "stubborn")}, Options{Stderr: os.Stderr})
		if len(errs) > 0 {
			os.Exit(1)
		}
		defer set.Close()
		fmt.Fprintln(os.Stderr, "up")
		select {}
	}
	kind := os.Getenv(asServer)
	if kind == "" {
		os.Exit(m.Run())
	}
	if play, ok := rawServers[kind]; ok {
		play()
		return
	}
	if err := newServerOf(kind).Run(context.Background(), &sdk.StdioTransport{}); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// program is a server that runs as a program.
func program(name, kind string) Server {
	return Server{Name: name, Command: []string{os.Args[0]}, Env: append(os.Environ(), asServer+"="+kind)}
}

type textArgs struct {
	Text string `json:"text"`
}

func saying(text string) *sdk.CallToolResult {
	return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: text}}}
}

// newServerOf makes a server with the SDK: "many" has 1,000 tools, "changing"
// others at each start, any other name the tools of these tests.
func newServerOf(kind string) *sdk.Server {
	s := sdk.NewServer(&sdk.Implementation{Name: "fake", Version: "1"}, nil)
	if kind == "many" {
		for i := range 1000 {
			sdk.AddTool(s, &sdk.Tool{Name: fmt.Sprintf("tool-%04d", i), Description: "one of many"},
				func(_ context.Context, _ *sdk.CallToolRequest, a textArgs) (*sdk.CallToolResult, any, error) {
					return saying(fmt.Sprint(i, a.Text)), nil, nil
				})
		}
		return s
	}
	add := func(name string, hints *sdk.ToolAnnotations, run func(context.Context, *sdk.CallToolRequest, textArgs) (*sdk.CallToolResult, error)) {
		sdk.AddTool(s, &sdk.Tool{Name: name, Description: "does " + name, Annotations: hints},
			func(ctx context.Context, req *sdk.CallToolRequest, a textArgs) (*sdk.CallToolResult, any, error) {
				res, err := run(ctx, req, a)
				return res, nil, err
			})
	}
	looks := &sdk.ToolAnnotations{ReadOnlyHint: true}
	add("echo", looks, func(_ context.Context, _ *sdk.CallToolRequest, a textArgs) (*sdk.CallToolResult, error) {
		return saying(a.Text), nil
	})
	add("fail", nil, func(context.Context, *sdk.CallToolRequest, textArgs) (*sdk.CallToolResult, error) {
		return nil, errors.New("it is broken")
	})
	add("key", nil, func(_ context.Context, req *sdk.CallToolRequest, _ textArgs) (*sdk.CallToolResult, error) {
		return saying(fmt.Sprint(req.Params.Meta["outcrop/callKey"])), nil
	})
	add("pid", nil, func(context.Context, *sdk.CallToolRequest, textArgs) (*sdk.CallToolResult, error) {
		return saying(fmt.Sprint(os.Getpid())), nil
	})
	add("hang", nil, func(ctx context.Context, _ *sdk.CallToolRequest, _ textArgs) (*sdk.CallToolResult, error) {
		fmt.Fprintln(os.Stderr, "hanging", os.Getpid())
		<-ctx.Done()
		fmt.Fprintln(os.Stderr, "cancelled")
		return nil, ctx.Err()
	})
	add("exit", nil, func(context.Context, *sdk.CallToolRequest, textArgs) (*sdk.CallToolResult, error) {
		os.Exit(3)
		return nil, nil
	})
	add("panic", nil, func(context.Context, *sdk.CallToolRequest, textArgs) (*sdk.CallToolResult, error) {
		panic("a bug of the server")
	})
	add("image", looks, func(_ context.Context, _ *sdk.CallToolRequest, a textArgs) (*sdk.CallToolResult, error) {
		return &sdk.CallToolResult{Content: []sdk.Content{&sdk.ImageContent{Data: picture(3, 2), MIMEType: "image/jpeg"}}}, nil
	})
	add("everything", looks, func(context.Context, *sdk.CallToolRequest, textArgs) (*sdk.CallToolResult, error) {
		return &sdk.CallToolResult{Content: []sdk.Content{
			&sdk.TextContent{Text: "text"},
			&sdk.ImageContent{Data: []byte("no image"), MIMEType: "image/png"},
			&sdk.AudioContent{Data: []byte("beep"), MIMEType: "audio/wav"},
			&sdk.ResourceLink{URI: "file:///a", Name: "a", MIMEType: "text/plain"},
			&sdk.EmbeddedResource{Resource: &sdk.ResourceContents{URI: "file:///b", Text: "beta"}},
			&sdk.EmbeddedResource{Resource: &sdk.ResourceContents{URI: "file:///c", Blob: []byte{0, 1}, MIMEType: "application/x-c"}},
		}}, nil
	})
	add("crowd", looks, func(context.Context, *sdk.CallToolRequest, textArgs) (*sdk.CallToolResult, error) {
		res := &sdk.CallToolResult{}
		for i := range 1500 {
			res.Content = append(res.Content, &sdk.TextContent{Text: fmt.Sprint(i)})
		}
		return res, nil
	})
	add("notify", looks, func(ctx context.Context, req *sdk.CallToolRequest, _ textArgs) (*sdk.CallToolResult, error) {
		for i := range 500 {
			if err := req.Session.NotifyProgress(ctx, &sdk.ProgressNotificationParams{ProgressToken: "x", Progress: float64(i)}); err != nil {
				return nil, err
			}
		}
		return saying("told"), nil
	})
	s.AddTool(&sdk.Tool{Name: "structured", InputSchema: json.RawMessage(`{"type":"object"}`)},
		func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
			return &sdk.CallToolResult{Content: []sdk.Content{}, StructuredContent: map[string]any{"b": 1, "a": []int{2}}}, nil
		})
	s.AddTool(&sdk.Tool{Name: "protocol-error", InputSchema: json.RawMessage(`{"type":"object"}`)},
		func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
			return nil, errors.New("not today")
		})
	return s
}

func picture(w, h int) []byte {
	var b bytes.Buffer
	if err := png.Encode(&b, image.NewGray(image.Rect(0, 0, w, h))); err != nil {
		panic(err)
	}
	return b.Bytes()
}

// rawServers speak the protocol by hand, badly.
var rawServers = map[string]func(){
	"mute": func() { // takes everything, answers nothing, and stays
		go func() { _, _ = bufio.NewReader(os.Stdin).WriteTo(discard{}) }()
		time.Sleep(time.Hour)
	},
	"dead": func() {
		fmt.Fprintln(os.Stderr, "Error: no \x1b[31mlicence")
		os.Exit(7)
	},
	"picky": func() { // ends at a greeting that it does not know
		serve(func(method string, _ json.RawMessage) string {
			if method == "server/discover" {
				os.Exit(1)
			}
			return goodAnswers(method)
		})
	},
	"chatty": func() { // writes for people where messages belong
		fmt.Println("Server v1 is listening on stdio")
		fmt.Println("[info] ready", strings.Repeat("!", 100_000))
		serve(func(method string, _ json.RawMessage) string {
			fmt.Println("got", method)
			fmt.Println(`{"jsonrpc":"2.0","method":"notifications/elicitation/complete"}`)
			fmt.Println(`{"jsonrpc":"2.0","id":"q` + method + `","method":"elicitation/create"}`)
			fmt.Println(`{"jsonrpc":"2.0","id":"r` + method + `","method":"roots/list","params":null}`)
			fmt.Println(`[{"jsonrpc":"2.0","method":"notifications/progress"}]`)
			return goodAnswers(method)
		})
	},
	"no-tools": func() { // has none and says so
		serve(func(method string, _ json.RawMessage) string {
			if method == "tools/list" {
				return goodAnswers("none")
			}
			return goodAnswers(method)
		})
	},
	"bad-tools": func() { serve(listing(badTools)) },
	"endless": func() { // a list without an end
		n := 0
		serve(func(method string, _ json.RawMessage) string {
			if method != "tools/list" {
				return goodAnswers(method)
			}
			n++
			return fmt.Sprintf(`{"result":{"tools":[{"name":"t%d","inputSchema":{"type":"object"}}],"nextCursor":"c%d"}}`, n, n)
		})
	},
	"flood-line": func() { // one message without an end
		serve(func(method string, _ json.RawMessage) string {
			if method == "tools/call" {
				flood(`{"jsonrpc":"2.0","x":"`, strings.Repeat("y", 1<<16))
			}
			return goodAnswers(method)
		})
	},
	"flood-notes": func() {
		serve(func(method string, _ json.RawMessage) string {
			if method == "tools/call" {
				flood("", strings.Repeat(`{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"x"}}`+"\n", 1000))
			}
			return goodAnswers(method)
		})
	},
	"flood-asks": func() {
		serve(func(method string, _ json.RawMessage) string {
			if method == "tools/call" {
				for i := 0; ; i++ {
					if _, err := fmt.Printf(`{"jsonrpc":"2.0","id":"a%d","method":"ping"}`+"\n", i); err != nil {
						os.Exit(0)
					}
				}
			}
			return goodAnswers(method)
		})
	},
	"deaf": func() { // stops reading once it is up
		serve(func(method string, _ json.RawMessage) string {
			if method == "tools/call" {
				time.Sleep(time.Hour)
			}
			return goodAnswers(method)
		})
	},
	"stubborn": func() { // does not end with its input, nor does its child
		child := exec.Command(os.Args[0])
		child.Env = append(os.Environ(), asServer+"=mute")
		child.Stdout, child.Stderr = os.Stdout, os.Stderr
		if err := child.Start(); err != nil {
			os.Exit(1)
		}
		fmt.Fprintln(os.Stderr, "child", child.Process.Pid)
		serve(func(method string, _ json.RawMessage) string { return goodAnswers(method) })
		time.Sleep(time.Hour)
	},
	"strange": func() { // answers what the SDK cannot read, or takes for something else
		serve(func(method string, params json.RawMessage) string {
			if method != "tools/call" {
				return goodAnswers(method)
			}
			what, _ := jsonwire.Text(jsonwire.Get(jsonwire.Get(params, "arguments"), "text"))
			return what
		})
	},
	"other-tools": func() { // lists other tools at its second start
		name := "first"
		if _, err := os.Stat(os.Getenv("OUTCROP_TEST_MARK")); err == nil {
			name = "second"
		} else if err := os.WriteFile(os.Getenv("OUTCROP_TEST_MARK"), nil, 0o600); err != nil {
			os.Exit(1)
		}
		serve(func(method string, _ json.RawMessage) string {
			if method == "tools/call" {
				os.Exit(2)
			}
			return listing(fmt.Sprintf(`{"name":%q,"inputSchema":{"type":"object"}}`, name))(method, nil)
		})
	},
}

const badTools = `
	{"name":"good","inputSchema":{"type":"object","properties":{"z":{"type":"string"},"a":{"type":"integer"}}}},
	{"name":"good","inputSchema":{"type":"object"}},
	null,
	{"name":"","inputSchema":{"type":"object"}},
	{"name":"no schema"},
	{"name":"array","inputSchema":{"type":"array"}},
	{"name":"text","inputSchema":"object"},
	{"name":"no type","inputSchema":{}},
	{"name":"unresolved","inputSchema":{"type":"object","properties":{"a":{"$ref":"#/$defs/none"}}}},
	{"name":"elsewhere","inputSchema":{"type":"object","properties":{"a":{"$ref":"https://schemas.example/a.json"}}}},
	{"name":"pattern","inputSchema":{"type":"object","properties":{"a":{"type":"string","pattern":"("}}}},
	{"name":"nul","inputSchema":{"type":"object","description":"a\u0000b"}},
	{"name":"big","inputSchema":{"type":"object","description":"BIG"}}`

type discard struct{}

func (discard) Write(p []byte) (int, error) { return len(p), nil }

func flood(first, rest string) {
	w := bufio.NewWriter(os.Stdout)
	_, err := w.WriteString(first)
	for err == nil {
		_, err = w.WriteString(rest)
	}
	os.Exit(0)
}

// listing answers with these tools.
func listing(tools string) func(string, json.RawMessage) string {
	tools = strings.Replace(tools, "BIG", strings.Repeat("x", maxSchema), 1)
	return func(method string, _ json.RawMessage) string {
		if method == "tools/list" {
			return `{"result":{"tools":[` + strings.Join(strings.Fields(strings.ReplaceAll(tools, "\n", " ")), " ") + `]}}`
		}
		return goodAnswers(method)
	}
}

// goodAnswers are right, for an old protocol.
func goodAnswers(method string) string {
	switch method {
	case "initialize":
		return `{"result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"raw","version":"1"}}}`
	case "ping":
		return `{"result":{}}`
	case "tools/list":
		return `{"result":{"tools":[{"name":"echo","description":"says hello","inputSchema":{"type":"object"}}]}}`
	case "tools/call":
		return `{"result":{"content":[{"type":"text","text":"hello"}]}}`
	}
	return `{"error":{"code":-32601,"message":"unknown method"}}`
}

// serve reads requests and writes what answer gives for each.
func serve(answer func(method string, params json.RawMessage) string) {
	in := bufio.NewReader(os.Stdin)
	for {
		line, err := in.ReadBytes('\n')
		if err != nil {
			return
		}
		method, _ := jsonwire.Text(jsonwire.Get(line, "method"))
		id := jsonwire.Get(line, "id")
		if id == nil {
			continue
		}
		text := answer(method, jsonwire.Get(line, "params"))
		fmt.Printf(`{"jsonrpc":"2.0","id":%s,%s`+"\n", id, strings.TrimPrefix(text, "{"))
	}
}
