/** A client of the bridge, for the tests of Area B. */
import { expect } from "vitest"
import { childrenOf } from "../../http/formats/xml/index.ts"
import { resourceTable } from "../../http/resource-table.ts"
import { type Answered, startService } from "./harness.ts"
import type { TestSettings } from "./nodes.ts"

export const formType = "application/x-www-form-urlencoded"
export const yes = `<answer continue="true">yes</answer>`

/** The fields of a challenge. */
export const challengeOf = (answered: Answered) => {
  const { attributes, name } = answered.xml
  expect(name).toBe("challenge")
  return {
    session: attributes["session"],
    p: answered.child("p"),
    method: answered.child("method"),
    uri: answered.child("uri")
  }
}

/** A service with sessions and content, and the steps of a client. */
export const startBridge = async (settings: TestSettings = {}) => {
  const service = await startService(resourceTable, settings)
  const { send } = service
  const put = (path: string, body: string): Promise<Answered> => send("PUT", path, { body })
  /** Begins a session; returns its path. */
  const begin = async (): Promise<string> => {
    const answered = await send("POST", "/sessions", { body: yes })
    expect(answered.status).toBe(201)
    return answered.header("location").slice(service.base.length)
  }
  const withAnswers = async (name: string, quest?: string): Promise<string> => {
    const path = await begin()
    expect((await put(`${path}/name`, `<answer>${name}</answer>`)).status).toBe(201)
    if (quest !== undefined) {
      expect((await put(`${path}/quest`, `<answer>${quest}</answer>`)).status).toBe(201)
    }
    return path
  }
  /** The status in the listing. */
  const statusOf = async (path: string): Promise<string | undefined> => {
    const { xml } = await send("GET", "/sessions?limit=1000")
    const entry = childrenOf(xml).find(({ attributes }) => attributes["href"] === path)
    return entry?.attributes["status"]
  }
  return { base: service.base, send, put, begin, withAnswers, statusOf, close: service.close }
}

export type Bridge = Awaited<ReturnType<typeof startBridge>>
