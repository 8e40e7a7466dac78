/**
 * The counters and mailboxes of Restate: virtual objects, by Restate's own SDK from the folder in
 * which it is installed. `node restate-service.js <folder> <port>`.
 */
import { createRequire } from "node:module"
import { join } from "node:path"

/** The used part of Restate's SDK, which is no dependency of this project. */
interface Sdk {
  readonly object: (definition: {
    readonly name: string
    readonly handlers: Readonly<Record<string, unknown>>
    readonly options?: { readonly enableLazyState: boolean }
  }) => unknown
  readonly handlers: {
    readonly object: {
      readonly exclusive: (
        options: { readonly input: unknown; readonly accept: string },
        handler: (context: ObjectContext, body: Uint8Array) => Promise<number>
      ) => unknown
    }
  }
  readonly serde: { readonly binary: unknown }
  readonly serve: (options: {
    readonly services: ReadonlyArray<unknown>
    readonly port: number
  }) => Promise<number>
}

interface ObjectContext {
  readonly get: (name: string) => Promise<number | null>
  readonly set: (name: string, value: unknown, serde?: unknown) => void
}

const [folder = "", port = ""] = process.argv.slice(2)

// The SDK needs this of Node 22, and the bench runs on Node 20.
const withResolvers = () => {
  let resolve: (value: unknown) => void = () => undefined
  let reject: (cause: unknown) => void = () => undefined
  const promise = new Promise((resolved, rejected) => {
    resolve = resolved
    reject = rejected
  })
  return { promise, resolve, reject }
}
if (!("withResolvers" in Promise)) Object.assign(Promise, { withResolvers })

// The module has at least what the interface names.
const { handlers, object, serde, serve } = createRequire(join(folder, "package.json"))(
  "@restatedev/restate-sdk"
) as Sdk

const counter = object({
  name: "counter",
  handlers: {
    add: async (context: ObjectContext, by: number) => {
      const count = (await context.get("count") ?? 0) + by
      context.set("count", count)
      return count
    }
  }
})

/** Each document has a key of its own in the state, by its number. */
const mailbox = object({
  name: "mailbox",
  handlers: {
    deposit: handlers.object.exclusive(
      { input: serde.binary, accept: "*/*" },
      async (context, body) => {
        const number = (await context.get("count") ?? 0) + 1
        context.set("count", number)
        context.set(`document-${number}`, body, serde.binary)
        return number
      }
    ),
    count: async (context: ObjectContext) => await context.get("count") ?? 0
  },
  // Otherwise every call would bring all documents of the mailbox to the handler.
  options: { enableLazyState: true }
})

await serve({ port: Number(port), services: [counter, mailbox] })
