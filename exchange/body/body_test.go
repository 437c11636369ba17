package body_test

import (
	"bytes"
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/outcrop-dev/outcrop"
	"github.com/outcrop-dev/outcrop/exchange/body"
	"github.com/outcrop-dev/outcrop/exchange/modelview"
	"github.com/outcrop-dev/outcrop/exchange/transcript"
	"github.com/outcrop-dev/outcrop/internal/jsonwire"
	"github.com/outcrop-dev/outcrop/store/jsonl"
)

func sample(t testing.TB) transcript.Source {
	t.Helper()
	st, err := jsonl.File(filepath.Join("..", "..", "internal", "cli", "testdata", "sample.jsonl"), jsonl.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return transcript.Stored(st, "")
}

// TestEveryPrefixGivesABody: wherever a session is cut, the body is JSON that
// passes the checks of every request.
func TestEveryPrefixGivesABody(t *testing.T) {
	src := sample(t)
	for at := outcrop.Seq(8); at < 79; at++ {
		for _, api := range []body.API{body.OpenAI, body.Anthropic} {
			var out bytes.Buffer
			rep, err := body.Write(t.Context(), &out, src, api, body.Options{Options: modelview.Options{Before: at}})
			if err != nil || rep.Refusal != nil || jsonwire.Strict(out.Bytes()) != nil {
				t.Fatalf("before %d, %s: %v, %v, %s", at, api, err, rep.Refusal, out.Bytes())
			}
		}
	}
}

func TestAnotherModelCanBeNamed(t *testing.T) {
	var out bytes.Buffer
	if _, err := body.Write(t.Context(), &out, sample(t), body.OpenAI, body.Options{Model: "other"}); err != nil || !strings.HasPrefix(out.String(), `{"model":"other"`) {
		t.Errorf("%v: %.60s", err, out.String())
	}
	if _, err := body.Write(t.Context(), &out, sample(t), "smoke-signals", body.Options{}); err == nil {
		t.Error("there is an encoder for every name")
	}
}

// ExampleWrite prints the request that goes on where a session ended.
func ExampleWrite() {
	st, _ := jsonl.File(filepath.Join("..", "..", "internal", "cli", "testdata", "sample.jsonl"), jsonl.Options{})
	var out bytes.Buffer
	rep, err := body.Write(context.Background(), &out, transcript.Stored(st, ""), body.OpenAI, body.Options{})
	fmt.Println(rep.Messages, rep.Refusal, err)
	fmt.Printf("%.40s\n", out.String())
	// Output:
	// 8 <nil> <nil>
	// {"model":"deepseek-chat","stream":true,"
}
