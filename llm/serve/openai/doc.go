// Package openai tests llm/serve with OpenAI's client for Go. It is a separate module, so that
// programs that use rayo do not depend on that client.
package openai
