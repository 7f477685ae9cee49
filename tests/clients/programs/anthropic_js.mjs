import Anthropic from '@anthropic-ai/sdk'
import { zodOutputFormat } from '@anthropic-ai/sdk/helpers/zod'
import { z } from 'zod'

const client = new Anthropic() // reads ANTHROPIC_BASE_URL and ANTHROPIC_API_KEY
const messages = [{ role: 'user', content: 'What is the capital of France? Answer in one sentence.' }]
const settings = { model: 'default', max_tokens: 64, temperature: 0 }

// A whole answer.
const answer = await client.messages.create({ ...settings, messages })
console.log('answer:', answer.content[0].text)

// The same answer, streamed.
process.stdout.write('stream: ')
const stream = client.messages.stream({ ...settings, messages })
stream.on('text', (text) => process.stdout.write(text))
await stream.finalMessage()
process.stdout.write('\n')

// A tool call.
const weather = {
  name: 'weather',
  description: 'The weather in a city.',
  input_schema: {
    type: 'object',
    properties: { city: { type: 'string', enum: ['Paris', 'Rome'] } },
    required: ['city'],
  },
}
const asked = await client.messages.create({
  ...settings,
  messages: [{ role: 'user', content: 'What is the weather in Paris?' }],
  tools: [weather],
  tool_choice: { type: 'any' },
})
const call = asked.content.find((block) => block.type === 'tool_use')
console.log('tool:', call.name, JSON.stringify(call.input))

// Structured output.
const Place = z.object({ city: z.enum(['Paris', 'Rome']), in_europe: z.boolean() })
const parsed = await client.messages.parse({ ...settings, messages, output_config: { format: zodOutputFormat(Place) } })
console.log('parsed:', JSON.stringify(parsed.parsed_output))

// The size of a prompt.
const counted = await client.messages.countTokens({ model: 'default', messages })
console.log('tokens:', counted.input_tokens)
