/** The OpenAPI 3.1 document of a face, made of the Schemas of its messages. */
import { JsonSchema, Schema, SchemaRepresentation } from "effect"
import type { ExposedActor, ExposedMessage, ExposedQuery } from "./expose.ts"
import { type ProblemName, problems, problemTypePrefix } from "./problem.ts"

/** What the document says of the service. */
export interface ApiInfo {
  /** "Actors" by default. */
  readonly title?: string
  /** The version of the service, which is not that of OpenAPI; "1" by default. */
  readonly version?: string
  readonly description?: string
}

export interface DocumentOptions extends ApiInfo {
  readonly basePath: string
}

type Json = Readonly<Record<string, unknown>>

const isJson = (value: unknown): value is Json => typeof value === "object" && value !== null

const nonFinite = JSON.stringify(["Infinity", "-Infinity", "NaN"])

/** Whether a schema is that of numbers that JSON has not. */
const isNonFinite = (schema: unknown): boolean =>
  isJson(schema) && JSON.stringify(schema["enum"]) === nonFinite

/** A schema as messages are: their numbers are those of JSON. */
const withFiniteNumbers = (schema: unknown): unknown => {
  if (Array.isArray(schema)) return schema.map(withFiniteNumbers)
  if (!isJson(schema)) return schema
  const { anyOf, ...others } = schema
  const rest = Object.fromEntries(
    Object.entries(others).map(([name, value]) => [name, withFiniteNumbers(value)])
  )
  if (!Array.isArray(anyOf)) return rest
  const choices = anyOf.filter((one) => !isNonFinite(one)).map(withFiniteNumbers)
  return choices.length === 1 && isJson(choices[0])
    ? { ...rest, ...choices[0] }
    : { ...rest, anyOf: choices }
}

/** The JSON Schema of each of these, and the components that they refer to. */
const jsonSchemasOf = (schemas: ReadonlyArray<Schema.Codec<unknown, unknown>>) => {
  const [first, ...rest] = schemas.map((schema) => Schema.toCodecJson(schema).ast)
  if (first === undefined) return { schemas: [], components: {} }
  const representations = SchemaRepresentation.toRepresentations([first, ...rest])
  const document = JsonSchema.toMultiDocumentOpenApi3_1(
    SchemaRepresentation.toJsonSchemaMultiDocument(representations)
  )
  // What is made of a schema, or of schemas by name, is of its form.
  return {
    schemas: withFiniteNumbers(document.schemas) as ReadonlyArray<Json>,
    components: withFiniteNumbers(document.definitions) as Readonly<Record<string, Json>>
  }
}

const componentPrefix = "#/components/schemas/"

const referenceTo = (name: string): Json => ({ $ref: componentPrefix + name })

/** The name of the component of a message: `counter.Add`. */
const nameOf = (kind: string, tag: string): string =>
  `${kind}.${tag.replaceAll(/[^\w.-]/g, (character) => `_${character.codePointAt(0)}`)}`

const problemSchema: Json = {
  type: "object",
  required: ["type", "title", "status", "detail", "outcome"],
  properties: {
    type: { type: "string", enum: Object.keys(problems).map((name) => problemTypePrefix + name) },
    title: { type: "string" },
    status: { type: "integer" },
    detail: { type: "string", description: "What happened, to what, and what to do" },
    outcome: {
      type: "string",
      enum: ["refused", "unchanged", "indeterminate", "committed"],
      description: "Whether the message can have changed the actor. After `indeterminate`, " +
        "repeat it only if the actor recognizes a repetition"
    },
    reason: { type: "string", description: "Why the actor refused, for programs" },
    data: { description: "A JSON value: what the actor says of its refusal besides, for programs" },
    retryAfterMs: { type: "number" }
  }
}

const problemComponent = "Problem"

const problemAnswer = (name: ProblemName): readonly [string, Json] => [
  String(problems[name].status),
  {
    description: problems[name].title,
    content: { "application/problem+json": { schema: referenceTo(problemComponent) } }
  }
]

const problemAnswers = (...names: ReadonlyArray<ProblemName>): Json =>
  Object.fromEntries(names.map(problemAnswer))

const alwaysPossible: ReadonlyArray<ProblemName> = ["unauthenticated", "forbidden", "failed"]

/** What any message may be answered. */
const askProblems: ReadonlyArray<ProblemName> = [
  ...alwaysPossible,
  "not-found",
  "refused",
  "invalid-message",
  "unavailable",
  "outcome-unknown",
  "not-stored"
]

const anyJson: Json = { description: "A JSON value: the reply of the actor" }

/** The schemas of the messages of one actor, and of their replies. */
interface MessageSchemas {
  readonly of: (message: ExposedMessage) => Json
  readonly replyOf: (message: ExposedMessage) => Json | undefined
}

/** Answers with the replies to these messages, each as it is described. */
const replyAnswers = (messages: ReadonlyArray<ExposedMessage>, { replyOf }: MessageSchemas) => {
  const replies = messages.map(replyOf)
  const known = replies.filter((reply) => reply !== undefined)
  const unique = [...new Map(known.map((one) => [JSON.stringify(one), one])).values()]
  const schema = known.length < replies.length
    ? anyJson
    : unique.length === 1
    ? unique[0]
    : { anyOf: unique }
  return {
    200: {
      description: "The reply, once it is durable",
      content: { "application/json": { schema } }
    },
    204: { description: "The actor has processed the message, and gives no reply" }
  }
}

const idParameter: Json = {
  name: "id",
  in: "path",
  required: true,
  description: "The actor. It exists from its first message on",
  schema: { type: "string", pattern: "^[A-Za-z0-9_=-]{1,200}$" }
}

/** The fields of all queries as parameters, each once. */
const queryParameters = (queries: ReadonlyArray<ExposedQuery>, { of }: MessageSchemas): Json[] => {
  const [first] = queries
  const names = [...new Set(queries.flatMap(({ fields }) => fields.map(({ name }) => name)))]
  const parameters = names.map((name) => {
    const having = queries.filter(({ fields }) => fields.some((field) => field.name === name))
    const schemas = having.map((query) => propertyOf(of(query), name))
    const unique = [...new Map(schemas.map((one) => [JSON.stringify(one), one])).values()]
    const isRequired = (query: ExposedQuery) =>
      query.fields.some((field) => field.name === name && field.isRequired)
    return {
      name,
      in: "query",
      required: queries.every(isRequired),
      description: `A field of ${having.map(({ tag }) => tag).join(" and ")}`,
      schema: unique.length === 1 ? unique[0] : { anyOf: unique }
    }
  })
  const tag = {
    name: "_tag",
    in: "query",
    required: false,
    description: "The message",
    schema: { type: "string", enum: queries.map((query) => query.tag), default: first?.tag }
  }
  return [tag, ...parameters]
}

const propertyOf = (schema: Json, name: string): unknown => {
  const { properties } = schema
  return isJson(properties) && Object.hasOwn(properties, name) ? properties[name] : {}
}

const queryOperation = ({ kind, queries }: ExposedActor, schemas: MessageSchemas): Json => ({
  operationId: `query-${kind}`,
  summary: `Asks a ${kind}; this changes nothing`,
  tags: [kind],
  parameters: queryParameters(queries, schemas),
  responses: {
    ...replyAnswers(queries, schemas),
    ...problemAnswers(...askProblems, "query-too-long")
  }
})

const sendOperation = (
  { commands, kind, queries }: ExposedActor,
  schemas: MessageSchemas
): Json => {
  const messages = [...commands, ...queries]
  const references = messages.map(({ tag }) => [tag, componentPrefix + nameOf(kind, tag)] as const)
  return {
    operationId: `send-${kind}`,
    summary: `Sends a message to a ${kind}`,
    description: "Repeat a message without an answer only if the actor recognizes a repetition, " +
      "such as by a key in it",
    tags: [kind],
    requestBody: {
      required: true,
      content: {
        "application/json": {
          schema: {
            oneOf: references.map(([, $ref]) => ({ $ref })),
            discriminator: { propertyName: "_tag", mapping: Object.fromEntries(references) }
          }
        }
      }
    },
    responses: {
      ...replyAnswers(messages, schemas),
      ...problemAnswers(
        ...askProblems,
        "malformed-message",
        "message-too-large",
        "unsupported-media-type"
      )
    }
  }
}

const logOperation = (kind: string): Json => ({
  operationId: `follow-${kind}`,
  summary: `The log of a ${kind}, and what is appended to it`,
  tags: [kind],
  parameters: [
    {
      name: "from",
      in: "query",
      description: "The number of the first item",
      schema: { type: "integer", minimum: 1, default: 1 }
    },
    {
      name: "Last-Event-ID",
      in: "header",
      description: "The number of the last item that the reader has",
      schema: { type: "integer", minimum: 0 }
    }
  ],
  responses: {
    200: {
      description: "Server-Sent Events: the id is the item's number, the data its JSON",
      content: { "text/event-stream": { schema: { type: "string" } } }
    },
    ...problemAnswers(...alwaysPossible, "not-found", "invalid-message", "unavailable")
  }
})

const pathsOf = (actor: ExposedActor, schemas: MessageSchemas): Json => {
  const { commands, hasLog, kind, queries } = actor
  const path = `/actors/${kind}/{id}`
  const operations = {
    ...(queries.length > 0 ? { get: queryOperation(actor, schemas) } : {}),
    ...(commands.length + queries.length > 0 ? { post: sendOperation(actor, schemas) } : {})
  }
  return {
    [path]: { parameters: [idParameter], ...operations },
    ...(hasLog ? { [`${path}/log`]: { parameters: [idParameter], get: logOperation(kind) } } : {})
  }
}

/** The document. `basePath` is where the paths of the face begin. */
export const openApiDocument = (
  actors: ReadonlyArray<ExposedActor>,
  { basePath, description, title = "Actors", version = "1" }: DocumentOptions
): Json => {
  const messages = actors.flatMap(({ commands, kind, queries }) =>
    [...commands, ...queries].map((message) => ({ kind, message }))
  )
  const withReply = messages.flatMap(({ message }) => message.reply === undefined ? [] : [message])
  const { components, schemas } = jsonSchemasOf([
    ...messages.map(({ message }) => message.schema),
    ...withReply.flatMap(({ reply }) => reply ?? [])
  ])
  const schemaAt = (at: number): Json => schemas[at] ?? {}
  const byMessage = new Map(messages.map(({ message }, at) => [message, schemaAt(at)]))
  const replies = new Map(withReply.map((message, at) => [message, schemaAt(messages.length + at)]))
  /** A message with an identifier is a component, which its schema only names. */
  const resolved = (schema: Json): Json => {
    const name = String(schema["$ref"] ?? "").slice(componentPrefix.length)
    return Object.hasOwn(components, name) ? components[name] ?? {} : schema
  }
  const described: MessageSchemas = {
    of: (message) => resolved(byMessage.get(message) ?? {}),
    replyOf: (message) => replies.get(message)
  }
  return {
    openapi: "3.1.0",
    info: { title, version, ...(description === undefined ? {} : { description }) },
    servers: [{ url: basePath === "" ? "/" : basePath }],
    tags: actors.map(({ kind }) => ({ name: kind })),
    paths: Object.assign({}, ...actors.map((actor) => pathsOf(actor, described))),
    components: {
      schemas: {
        ...components,
        ...Object.fromEntries(
          messages.map(({ kind, message }) => [
            nameOf(kind, message.tag),
            byMessage.get(message) ?? {}
          ])
        ),
        [problemComponent]: problemSchema
      }
    }
  }
}
