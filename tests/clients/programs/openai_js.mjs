import OpenAI from 'openai'
import { zodResponseFormat } from 'openai/helpers/zod'
import { z } from 'zod'

const client = new OpenAI() // reads OPENAI_BASE_URL and OPENAI_API_KEY
const model = 'default'
const messages = [{ role: 'user', content: 'What is the capital of France? Answer in one sentence.' }]

// A whole answer.
const answer = await client.chat.completions.create({ model, messages, temperature: 0, max_tokens: 16 })
console.log('answer:', answer.choices[0].message.content)

// The same answer, streamed.
process.stdout.write('stream: ')
const stream = await client.chat.completions.create({ model, messages, temperature: 0, max_tokens: 16, stream: true })
for await (const chunk of stream) process.stdout.write(chunk.choices[0]?.delta?.content ?? '')
process.stdout.write('\n')

// A tool call.
const weather = {
  type: 'function',
  function: {
    name: 'weather',
    description: 'The weather in a city.',
    parameters: {
      type: 'object',
      properties: { city: { type: 'string', enum: ['Paris', 'Rome'] } },
      required: ['city'],
    },
  },
}
const call = await client.chat.completions.create({
  model,
  messages: [{ role: 'user', content: 'What is the weather in Paris?' }],
  tools: [weather],
  tool_choice: 'required',
  temperature: 0,
  max_tokens: 64,
})
const { name, arguments: given } = call.choices[0].message.tool_calls[0].function
console.log('tool:', name, given)

// Structured output.
const Place = z.object({ city: z.enum(['Paris', 'Rome']), in_europe: z.boolean() })
const parsed = await client.chat.completions.parse({
  model,
  messages,
  response_format: zodResponseFormat(Place, 'place'),
  temperature: 0,
  max_tokens: 64,
})
console.log('parsed:', JSON.stringify(parsed.choices[0].message.parsed))

// Embeddings.
const vectors = await client.embeddings.create({ model, input: ['A man is eating food.', 'Someone has a meal.'] })
console.log('vectors:', vectors.data.length, 'of', vectors.data[0].embedding.length, 'numbers')

// A text that the model continues.
const continued = await client.completions.create({ model, prompt: 'The capital of France is', temperature: 0, max_tokens: 8 })
console.log('continued:', continued.choices[0].text)
