/**
 * The counters of Restate: a virtual object, by Restate's own SDK from the folder in which it is
 * installed. `node restate-service.js <folder> <port>`.
 */
import { createRequire } from "node:module"
import { join } from "node:path"

/** The used part of Restate's SDK, which is no dependency of this project. */
interface Sdk {
  readonly object: (definition: {
    readonly name: string
    readonly handlers: {
      readonly add: (context: ObjectContext, by: number) => Promise<number>
    }
  }) => unknown
  readonly serve: (options: {
    readonly services: ReadonlyArray<unknown>
    readonly port: number
  }) => Promise<number>
}

interface ObjectContext {
  readonly get: (name: string) => Promise<number | null>
  readonly set: (name: string, value: number) => void
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
const { object, serve } = createRequire(join(folder, "package.json"))(
  "@restatedev/restate-sdk"
) as Sdk

await serve({
  port: Number(port),
  services: [object({
    name: "counter",
    handlers: {
      add: async (context, by) => {
        const count = (await context.get("count") ?? 0) + by
        context.set("count", count)
        return count
      }
    }
  })]
})
