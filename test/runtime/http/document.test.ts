/** The OpenAPI document of a face: valid, and true of what the face does. */
import { readFileSync } from "node:fs"
import { Ajv2020 } from "ajv/dist/2020.js"
import addFormats from "ajv-formats"
import { expect, it } from "vitest"
import { expose, httpFace } from "../../../runtime/http/index.ts"
import { type ActorNode, defineActor, memory, Schema, startNode,
  stay } from "../../../runtime/main.ts"
import { counter } from "../definition/examples/counter.ts"
import { room } from "./actors.ts"

const Place = Schema.Struct({ row: Schema.Int, seat: Schema.Int })
  .annotate({ identifier: "A place" })

/** Messages by one Schema, which has an identifier, a nested union and a tag of odd letters. */
const seats = defineActor("seats", {
  state: { Free: {} },
  messages: Schema.Union([
    Schema.TaggedStruct("Take", { place: Place, price: Schema.Number }),
    Schema.Union([
      Schema.TaggedStruct("Is Free?", { row: Schema.Int }),
      Schema.TaggedStruct("Price", { row: Schema.Int, level: Schema.optionalKey(Schema.String) })
        .annotate({ identifier: "Price" })
    ])
  ]),
  initial: { _tag: "Free" },
  table: {
    Free: {
      Take: () => stay().reply("taken"),
      "Is Free?": (_, { row }) => stay().reply(row),
      Price: (_, { row }) => stay().reply(row)
    }
  }
})

type Json = { readonly [name: string]: Json }

const faceOf = (node: Pick<ActorNode, "ask" | "log">) =>
  httpFace(node, {
    basePath: "/api",
    info: { title: "Seats", version: "2.1", description: "What there is" },
    actors: [
      expose(counter, {
        commands: ["Add"],
        queries: ["Read"],
        replies: { Add: Schema.Int, Read: Schema.Int }
      }),
      expose(room, { queries: ["Find"], log: true }),
      expose(seats, {
        commands: ["Take"],
        queries: ["Price", "Is Free?"],
        replies: { Take: Schema.String }
      }),
      expose(
        defineActor("no-messages", {
          state: { On: {} },
          messages: {},
          initial: { _tag: "On" },
          table: { On: {} }
        }),
        {}
      )
    ],
    authorize: () => true
  })

const served = async (): Promise<Json> => {
  const node = await startNode({ actors: [counter, room, seats], store: memory() })
  const answer = await faceOf(node)(new Request("http://service.test/api/openapi.json"))
  await node.stop()
  // Any JSON object: the tests check what it has.
  return await answer.json() as Json
}

/** As for the document of the service, in `test/http/openapi.test.ts`. */
const metaSchema = (): object => {
  const path = new URL("../../http/openapi-3.1-schema.json", import.meta.url)
  const text = readFileSync(path, "utf8")
  return JSON.parse(text.replaceAll(`"$dynamicRef": "#meta"`, `"$ref": "#/$defs/schema"`))
}

const validator = (): Ajv2020 => {
  const ajv = new Ajv2020({ strict: false })
  addFormats.default(ajv)
  ajv.addFormat("media-range", true)
  return ajv
}

it("is OpenAPI 3.1 by the Initiative's own schema", async () => {
  const document = await served()
  const validate = validator().compile(metaSchema())
  validate(document)
  expect(validate.errors).toBe(null)
  // The check must be able to fail.
  expect(validate({ ...document, info: {} })).toBe(false)
  const references = [...JSON.stringify(document).matchAll(/"(#\/[^"]+)"/g)].map(([, one]) => one)
  expect(references.length).toBeGreaterThan(20)
  for (const reference of references) {
    const names = (reference ?? "").slice(2).split("/")
    const found = names.reduce<Json | undefined>((at, name) => at?.[name], document)
    expect([reference, found]).toEqual([reference, expect.any(Object)])
  }
})

it("describes each path, method, message and reply", async () => {
  const { components, info, paths, servers } = await served()
  expect([info, servers]).toEqual([
    { title: "Seats", version: "2.1", description: "What there is" },
    [{ url: "/api" }]
  ])
  const operations = Object.entries(paths ?? {}).flatMap(([path, item]) =>
    Object.entries(item).filter(([method]) => method !== "parameters")
      .map(([method, { operationId }]) => `${method} ${path} ${operationId}`)
  )
  expect(operations).toEqual([
    "get /actors/counter/{id} query-counter",
    "post /actors/counter/{id} send-counter",
    "get /actors/chat-room/{id} query-chat-room",
    "post /actors/chat-room/{id} send-chat-room",
    "get /actors/chat-room/{id}/log follow-chat-room",
    "get /actors/seats/{id} query-seats",
    "post /actors/seats/{id} send-seats"
  ])
  expect(Object.keys(components?.["schemas"] ?? {}).sort()).toEqual([
    "A_place",
    "Price",
    "Problem",
    "chat-room.Find",
    "counter.Add",
    "counter.Read",
    "seats.Is_32Free_63",
    "seats.Price",
    "seats.Take"
  ])
  const post = paths?.["/actors/counter/{id}"]?.["post"]
  expect(post?.["responses"]?.["200"]?.["content"]?.["application/json"]?.["schema"])
    .toMatchObject({ type: "integer" })
  const mapping = {
    Take: "#/components/schemas/seats.Take",
    Price: "#/components/schemas/seats.Price",
    "Is Free?": "#/components/schemas/seats.Is_32Free_63"
  }
  const sent = paths?.["/actors/seats/{id}"]?.["post"]
  const { schema } = sent?.["requestBody"]?.["content"]?.["application/json"] ?? {}
  expect(schema?.["discriminator"]).toEqual({ propertyName: "_tag", mapping })
})

it("describes the fields of queries as parameters, each once", async () => {
  const { paths } = await served()
  const parameters = paths?.["/actors/seats/{id}"]?.["get"]?.["parameters"]
  expect(parameters).toMatchObject([
    { name: "_tag", required: false, schema: { enum: ["Price", "Is Free?"], default: "Price" } },
    {
      name: "row",
      required: true,
      schema: { type: "integer" },
      description: "A field of Price and Is Free?"
    },
    { name: "level", required: false, schema: { type: "string" } }
  ])
})

it("accepts the messages that the face takes, and no others", async () => {
  const document = await served()
  const check = validator().compile({ ...document, $ref: "#/components/schemas/seats.Take" })
  const node = await startNode({ actors: [counter, room, seats], store: memory() })
  const face = faceOf(node)
  const place = { row: 1, seat: 2 }
  const messages: ReadonlyArray<unknown> = [
    { _tag: "Take", place, price: 1.5 },
    { _tag: "Take", place, price: "NaN" },
    { _tag: "Take", place, price: "Infinity" },
    { _tag: "Take", place: { row: 1 }, price: 1 },
    { _tag: "Take", place: { row: 1, seat: 2.5 }, price: 1 },
    { _tag: "Give", place, price: 1 }
  ]
  const results = await Promise.all(messages.map(async (message) => {
    const { status } = await face(
      new Request("http://service.test/api/actors/seats/a", {
        method: "POST",
        headers: { "content-type": "application/json" },
        body: JSON.stringify(message)
      })
    )
    return [check(message), status]
  }))
  await node.stop()
  const refused = [false, 422]
  expect(results).toEqual([[true, 200], refused, refused, refused, refused, refused])
})
