/** The built service for tests of the client: a process, and a client of it. */
import { type Client, connect, type ConnectOptions } from "../../client/index.ts"
import { adminToken, cleanUp, publicUrl, type Service, start } from "../e2e/process.ts"

export { cleanUp }

const env = {
  // Callbacks and recipients of these tests are on loopback.
  OUTBOUND_ALLOW: "127.0.0.0/8"
}

export const startService = (dataDir?: string): Promise<Service> =>
  start(dataDir === undefined ? { env } : { env, dataDir })

/** The account `admin` at a service that is reached at this address. */
export const asAdmin = (url: string, options: Partial<ConnectOptions> = {}): Client =>
  connect({ url, publicUrl, account: "admin", token: adminToken, ...options })

/** Everything that is there. */
export const all = async <A>(iterable: AsyncIterable<A>): Promise<Array<A>> => {
  const found: Array<A> = []
  for await (const one of iterable) found.push(one)
  return found
}

/** The first few, and then the loop is left. */
export const take = async <A>(count: number, iterable: AsyncIterable<A>): Promise<Array<A>> => {
  const found: Array<A> = []
  for await (const one of iterable) {
    found.push(one)
    if (found.length === count) break
  }
  return found
}

/** What a promise is rejected with. */
export const rejection = (promise: Promise<unknown>): Promise<unknown> =>
  promise.then((value) => Promise.reject(new Error(`it gave ${String(value)}`)), (error) => error)
