import { createOpenAI } from '@ai-sdk/openai'
import { generateText, Output, streamText, tool } from 'ai'
import { z } from 'zod'

const url = process.env.HOB_URL ?? 'http://localhost:8000/v1'
const hob = createOpenAI({ baseURL: url, apiKey: 'hob' })
const model = hob('default')
const prompt = 'What is the capital of France? Answer in one sentence.'

// A whole answer.
const answer = await generateText({ model, prompt, temperature: 0, maxOutputTokens: 64 })
console.log('answer:', answer.text)

// The same answer, streamed.
process.stdout.write('stream: ')
const stream = streamText({ model, prompt, temperature: 0, maxOutputTokens: 64 })
for await (const piece of stream.textStream) process.stdout.write(piece)
process.stdout.write('\n')

// A tool call.
const weather = tool({
  description: 'The weather in a city.',
  inputSchema: z.object({ city: z.enum(['Paris', 'Rome']) }),
})
const asked = await generateText({
  model,
  prompt: 'What is the weather in Paris?',
  tools: { weather },
  toolChoice: 'required',
  temperature: 0,
  maxOutputTokens: 64,
})
console.log('tool:', asked.toolCalls[0].toolName, JSON.stringify(asked.toolCalls[0].input))

// Structured output.
const Place = z.object({ city: z.enum(['Paris', 'Rome']), in_europe: z.boolean() })
const parsed = await generateText({
  model,
  prompt,
  output: Output.object({ schema: Place }),
  temperature: 0,
  maxOutputTokens: 64,
})
console.log('parsed:', JSON.stringify(parsed.output))
