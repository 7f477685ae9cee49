import { Ollama } from 'ollama'
import { z } from 'zod'

const client = new Ollama({ host: process.env.OLLAMA_HOST ?? 'http://localhost:8000' })
const model = 'default'
const messages = [{ role: 'user', content: 'What is the capital of France? Answer in one sentence.' }]
const options = { temperature: 0, num_predict: 64 }

// A whole answer.
const answer = await client.chat({ model, messages, options })
console.log('answer:', answer.message.content)

// The same answer, streamed.
process.stdout.write('stream: ')
for await (const part of await client.chat({ model, messages, options, stream: true })) {
  process.stdout.write(part.message.content)
}
process.stdout.write('\n')

// The answer to a prompt without a conversation.
const generated = await client.generate({ model, prompt: messages[0].content, options })
console.log('generated:', generated.response)

// Structured output.
const Place = z.object({ city: z.enum(['Paris', 'Rome']), in_europe: z.boolean() })
const parsed = await client.chat({ model, messages, options, format: z.toJSONSchema(Place) })
console.log('parsed:', JSON.stringify(Place.parse(JSON.parse(parsed.message.content))))

// Embeddings.
const { embeddings } = await client.embed({ model, input: ['A man is eating food.', 'Someone has a meal.'] })
console.log('vectors:', embeddings.length, 'of', embeddings[0].length, 'numbers')

// The models, and what one of them can do.
const { models } = await client.list()
console.log('models:', models.map((each) => each.name).join(', '))
console.log('can:', (await client.show({ model })).capabilities.join(', '))
