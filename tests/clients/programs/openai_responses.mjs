import OpenAI from 'openai'
import { zodTextFormat } from 'openai/helpers/zod'
import { z } from 'zod'

const client = new OpenAI() // reads OPENAI_BASE_URL and OPENAI_API_KEY
const input = 'What is the capital of France? Answer in one sentence.'
const settings = { model: 'default', temperature: 0, max_output_tokens: 64 }

// A whole answer.
const answer = await client.responses.create({ ...settings, input })
console.log('answer:', answer.output_text)

// The same answer, streamed.
process.stdout.write('stream: ')
const stream = await client.responses.create({ ...settings, input, stream: true })
for await (const event of stream) if (event.type === 'response.output_text.delta') process.stdout.write(event.delta)
process.stdout.write('\n')

// A tool call.
const weather = {
  type: 'function',
  name: 'weather',
  description: 'The weather in a city.',
  parameters: {
    type: 'object',
    properties: { city: { type: 'string', enum: ['Paris', 'Rome'] } },
    required: ['city'],
  },
}
const asked = await client.responses.create({
  ...settings,
  input: 'What is the weather in Paris?',
  tools: [weather],
  tool_choice: 'required',
})
const call = asked.output.find((item) => item.type === 'function_call')
console.log('tool:', call.name, call.arguments)

// Structured output.
const Place = z.object({ city: z.enum(['Paris', 'Rome']), in_europe: z.boolean() })
const parsed = await client.responses.parse({ ...settings, input, text: { format: zodTextFormat(Place, 'place') } })
console.log('parsed:', JSON.stringify(parsed.output_parsed))

// A conversation that Hob stores: the next question refers to the answer before it.
const more = await client.responses.create({ ...settings, input: 'Say that again.', previous_response_id: answer.id })
console.log('more:', more.output_text)
const stored = await client.responses.retrieve(answer.id)
console.log('stored:', stored.output_text === answer.output_text)
await client.responses.delete(answer.id)
