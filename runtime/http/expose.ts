/**
 * What HTTP may send to the actors of a definition: its commands and its queries, by name. What is
 * not named cannot be sent, such as the results of effects.
 */
import { Schema, SchemaAST } from "effect"
import type { Tagged } from "../actor/index.ts"
import { type ActorNode, type ActorProtocol, type ActorRef, casesOf,
  type LogEntry } from "../definition/index.ts"
import { valueFault } from "./json-body.ts"

/** A definition, as `defineActor` returns it. */
export interface ExposableActor<Message extends Tagged, Replies, Item>
  extends ActorProtocol<Message, Replies, Item>
{
  (id: string): ActorRef<Message, Replies, Item>
  readonly messageSchema: Schema.Codec<Tagged, unknown>
  readonly behavior: { readonly timerMessage: Tagged }
}

/** What HTTP may do with the actors of a definition. */
export interface ExposeOptions<Tag extends string> {
  /** The messages that a POST may have, besides the queries. */
  readonly commands?: ReadonlyArray<Tag>
  /**
   * The messages that a GET may have, whose fields are in the query string. Name only messages
   * whose cells change nothing: clients and proxies repeat a GET at will (RFC 9110 §9.2.1). The
   * first one answers a GET without `_tag`.
   */
  readonly queries?: ReadonlyArray<Tag>
  /** The replies to messages, for the OpenAPI document only; by default any JSON. */
  readonly replies?: { readonly [T in Tag]?: Schema.Codec<unknown, unknown> }
  /** Whether the log of an actor can be read and followed, as events; false by default. */
  readonly log?: boolean
}

/** A message, or what is wrong with it. */
export type ReadMessage =
  | { readonly _tag: "Read"; readonly message: Tagged }
  | { readonly _tag: "Invalid"; readonly detail: string }

/** One message that HTTP may send. */
export interface ExposedMessage {
  readonly tag: string
  readonly schema: Schema.Codec<Tagged, unknown>
  readonly reply: Schema.Codec<unknown, unknown> | undefined
}

/** A field of a query, which is a parameter of the query string. */
export interface QueryField {
  readonly name: string
  /** Whether the parameter may come more than once: an item of a list each. */
  readonly isList: boolean
  readonly isRequired: boolean
}

/** A message that a GET may have. */
export interface ExposedQuery extends ExposedMessage {
  readonly fields: ReadonlyArray<QueryField>
  /** The message of strings, as the query string has it. Throws when it is not one. */
  readonly decode: (strings: unknown) => Tagged
}

/** The actors of a definition, as far as HTTP reaches them; see {@link expose}. */
export interface ExposedActor<Message extends Tagged = Tagged> {
  readonly kind: string
  readonly commands: ReadonlyArray<ExposedMessage>
  readonly queries: ReadonlyArray<ExposedQuery>
  readonly hasLog: boolean
  /** The message of a body. */
  readonly readBody: (json: unknown) => ReadMessage
  /** The message of a query string. */
  readonly readQuery: (parameters: URLSearchParams) => ReadMessage
  readonly ask: (node: Pick<ActorNode, "ask">, id: string, message: Tagged) => Promise<unknown>
  readonly log: (
    node: Pick<ActorNode, "log">,
    id: string,
    from: number
  ) => AsyncIterable<LogEntry<unknown>>
  /** The type of its messages; it has no value. */
  readonly "~message"?: Message
}

/** Characters of what a Schema reports, at most: the rest is of no help. */
const faultCharsMax = 500

const isText = (ast: SchemaAST.AST): boolean =>
  SchemaAST.isUnion(ast)
    ? ast.types.every(isText)
    : SchemaAST.isString(ast) || SchemaAST.isLiteral(ast) || SchemaAST.isTemplateLiteral(ast) ||
      SchemaAST.isUndefined(ast)

const isTextList = (ast: SchemaAST.AST): boolean =>
  SchemaAST.isArrays(ast) && [...ast.elements, ...ast.rest].every(isText)

/** A message of the query string: every value in it is a text, or a list of texts. */
const queryOf = (kind: string, { reply, schema, tag }: ExposedMessage): ExposedQuery => {
  const codec = Schema.toCodecStringTree(schema)
  const ast = SchemaAST.toEncoded(codec.ast)
  const signatures = SchemaAST.isObjects(ast) ? ast.propertySignatures : []
  const fields = signatures.flatMap(({ name, type }): ReadonlyArray<QueryField> => {
    if (name === "_tag" || typeof name !== "string") return []
    const isList = isTextList(type)
    if (isList || isText(type)) {
      return [{ name, isList, isRequired: !SchemaAST.isOptional(type) }]
    }
    throw new TypeError(
      `the query ${tag} of ${kind} has a field ${name} that no query string can have: ` +
        "use a text, a number, a boolean or a list of them, or make it a command"
    )
  })
  return { tag, schema, reply, fields, decode: Schema.decodeUnknownSync(codec) }
}

/** The parameters of a query string as the fields of a message. */
const stringsOf = ({ fields, tag }: ExposedQuery, parameters: URLSearchParams) => ({
  ...Object.fromEntries(fields.flatMap(({ isList, name }) => {
    const values = parameters.getAll(name)
    if (values.length === 0) return []
    return [[name, isList || values.length > 1 ? values : values[0]]]
  })),
  _tag: tag
})

const readWith = (kind: string, decode: () => Tagged): ReadMessage => {
  const invalid = (fault: string): ReadMessage => ({
    _tag: "Invalid",
    detail: `${kind} does not take this message: ${fault}. Send one of its messages, as in the ` +
      "OpenAPI document"
  })
  try {
    const message = decode()
    const fault = valueFault(message)
    return fault === undefined ? { _tag: "Read", message } : invalid(fault)
  } catch (error) {
    const text = error instanceof Error ? error.message : String(error)
    return invalid(text.replaceAll(/\s+/g, " ").slice(0, faultCharsMax))
  }
}

/** Reads the message of a query string; its tag is the parameter `_tag`, or the first query's. */
const queryReader =
  (kind: string, queries: ReadonlyArray<ExposedQuery>) => (parameters: URLSearchParams) => {
    const tags = parameters.getAll("_tag")
    const query = tags.length === 0
      ? queries[0]
      : queries.find(({ tag }) => tags.length === 1 && tag === tags[0])
    return readWith(kind, () => {
      if (query !== undefined) return query.decode(stringsOf(query, parameters))
      throw new Error(`_tag is not ${queries.map(({ tag }) => tag).join(" or ")}`)
    })
  }

const assertOnce = (kind: string, tags: ReadonlyArray<string>): void => {
  const twice = tags.find((tag, at) => tags.indexOf(tag) !== at)
  if (twice === undefined) return
  throw new TypeError(`${twice} of ${kind} is exposed twice: name it once, as command or query`)
}

/** What only the timer or effects send cannot be exposed; the types name no such message. */
const assertPublic = (
  { behavior: { timerMessage }, internal, kind }: Pick<
    ExposableActor<Tagged, unknown, unknown>,
    "behavior" | "internal" | "kind"
  >,
  tags: ReadonlyArray<string>
): void => {
  for (const tag of tags) {
    const source = tag === timerMessage._tag
      ? "its timer"
      : internal.includes(tag)
      ? "effects"
      : undefined
    if (source === undefined) continue
    throw new TypeError(`${tag} of ${kind} comes from ${source} only: expose another message`)
  }
}

/**
 * The actors of a definition for {@link httpFace}. Throws a TypeError when a message cannot be
 * exposed: only the timer or effects send it, it has no Schema of its own with this `_tag`, or a
 * query has a field that no query string can have.
 */
export const expose = <Message extends Tagged, Replies, Item>(
  definition: ExposableActor<Message, Replies, Item>,
  options: ExposeOptions<Message["_tag"]>
): ExposedActor<Message> => {
  const { kind, messageSchema } = definition
  const { commands = [], log = false, queries = [] } = options
  // Any tag: those that are looked up here are of the definition.
  const replies: Readonly<Record<string, Schema.Codec<unknown, unknown> | undefined>> =
    options.replies ?? {}
  assertOnce(kind, [...commands, ...queries])
  const cases = new Map(casesOf(messageSchema as unknown as Schema.Top))
  assertPublic(definition, [...commands, ...queries])
  const exposed = (tag: string): ExposedMessage => {
    const schema = cases.get(tag)
    if (schema === undefined) {
      throw new TypeError(
        `${kind} has no message ${tag} with a Schema of its own: name one that it has, ` +
          "and make its messages a union of tagged structs"
      )
    }
    const reply = Object.hasOwn(replies, tag) ? replies[tag] : undefined
    // A case of the definition's messages, which are of this type.
    return { tag, schema: schema as unknown as Schema.Codec<Tagged, unknown>, reply }
  }
  const sent = commands.map(exposed)
  const asked = queries.map((tag) => queryOf(kind, exposed(tag)))
  const union = Schema.Union([...sent, ...asked].map(({ schema }) => schema))
  const decode = Schema.decodeUnknownSync(Schema.toCodecJson(union))
  return {
    kind,
    commands: sent,
    queries: asked,
    hasLog: log,
    readBody: (json) => {
      const fault = valueFault(json)
      return readWith(kind, () => {
        if (fault !== undefined) throw new Error(fault)
        return decode(json)
      })
    },
    readQuery: queryReader(kind, asked),
    // The Schema has checked that it is a message of the definition.
    ask: (node, id, message) => node.ask(definition(id), message as never),
    log: (node, id, from) => node.log(definition(id), { from })
  }
}
