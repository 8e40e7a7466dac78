/** Services for tests of the client, and their clients. */
import { expect } from "vitest"
import { type Client, connect, type ConnectOptions, type Registration } from "../../client/index.ts"
import { resourceTable } from "../../http/resource-table.ts"
import * as process from "../e2e/process.ts"
import { type Service, start } from "../e2e/process.ts"
import { echoes, type Received, receiver } from "../e2e/receivers.ts"
import * as harness from "../http/harness.ts"

/** A client of the account `admin`, for a service at any URL. */
export type AsAdmin = (url: string, options?: Partial<ConnectOptions>) => Client

/** The built service as a process. */
export const startProcess = (
  dataDir?: string,
  settings: Readonly<Record<string, string>> = {}
): Promise<Service> => {
  const env = { OUTBOUND_ALLOW: "127.0.0.0/8", ...settings }
  return start(dataDir === undefined ? { env } : { env, dataDir })
}

/** A client of the account `admin` of that process. */
export const atProcess: AsAdmin = (url, options = {}) => {
  const { adminToken: token, publicUrl } = process
  return connect({ url, publicUrl, account: "admin", token, ...options })
}

/** The service in this process, which starts faster. */
export const startHere = async () => {
  const { base: url, close } = await harness.startService(resourceTable)
  const asAdmin: AsAdmin = (at, options = {}) =>
    connect({
      url: at,
      publicUrl: url,
      account: "admin",
      token: harness.adminToken,
      ...options
    })
  return { url, port: Number(new URL(url).port), asAdmin, admin: asAdmin(url), close }
}

export type Here = Awaited<ReturnType<typeof startHere>>

/** Collects all values. */
export const all = async <A>(iterable: AsyncIterable<A>): Promise<Array<A>> => {
  const found: Array<A> = []
  for await (const one of iterable) found.push(one)
  return found
}

/** Collects the first values, and then leaves the loop. */
export const take = async <A>(count: number, iterable: AsyncIterable<A>): Promise<Array<A>> => {
  const found: Array<A> = []
  for await (const one of iterable) {
    found.push(one)
    if (found.length === count) break
  }
  return found
}

/** The error of a rejected promise. */
export const rejection = (promise: Promise<unknown>): Promise<unknown> =>
  promise.then((value) => Promise.reject(new Error(`it gave ${String(value)}`)), (error) => error)

/** A notification whose text has what parsers treat in their own way. */
export const inputOf = (n: number) => ({
  description: `number ${n} ü€😀`,
  url: "http://sender.test/",
  extra: { note: "second line\n\n& <b> \"'\u2028\u0085" }
})

/** The descriptions of such notifications. */
export const numbers = (count: number, from = 0) =>
  Array.from({ length: count }, (_, n) => inputOf(n + from).description)

/** A registration whose callback keeps its pushes. */
export const registeredAt = async (admin: Client, name: string) => {
  const pushes: Array<Received> = []
  const callback = await receiver((received, response) => {
    if (echoes(received, response)) return
    pushes.push(received)
    response.writeHead(204).end()
  })
  const { mailbox } = await admin.openMailbox({ name })
  const { registration, secret } = await mailbox.register({ callback: `${callback}/hook` })
  await registration.wait()
  const next = async (act: () => Promise<unknown>): Promise<Received> => {
    const { length } = pushes
    await act()
    // What hangs fails after a minute.
    return process.eventually(10_000, "a push", () => pushes[length])
  }
  return { mailbox, registration: registration as Registration, secret, next }
}

/** Checks that programs printed what the blocks of a page show; `…` is any text. */
export const expectShown = (
  printed: ReadonlyArray<string>,
  shown: ReadonlyArray<string>,
  url: string
): void => {
  expect(printed.length).toBe(shown.length)
  printed.forEach((text, n) => {
    const expected = (shown[n] ?? "").replaceAll("http://localhost:8080", url).replace(
      /[.*+?^${}()|[\]\\]/g,
      "\\$&"
    ).replace("…", ".*")
    expect(text).toMatch(new RegExp(`^${expected}$`))
  })
}
