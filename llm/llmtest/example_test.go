package llmtest_test

import (
	"fmt"

	"github.com/outcrop-dev/outcrop/llm/llmtest"
)

func ExampleRules_Check() {
	rules := llmtest.Rules{Profile: llmtest.OpenAI}
	fmt.Println(rules.Check([]byte(`{"messages":[{"role":"user","content":"Hi."},{"role":"assistant","content":"Hello."}]}`)))
	// Output: rule 1: messages[1]: the last message cannot be the assistant's
}
