/** The rate limits of a built service without any setting of them. */
import { afterAll, expect, it } from "vitest"
import { expectStatus, send } from "../e2e/client.ts"
import { cleanUp, start } from "../e2e/process.ts"

afterAll(cleanUp)

it("are on by default, except for clients of this machine", async () => {
  const service = await start()
  const fields = async (headers: Readonly<Record<string, string>>) => {
    const { headers: answered } = expectStatus(await send(service.url, "/", { headers }), 200)
    return ["ratelimit-policy", "ratelimit"].map((name) => answered.get(name))
  }
  const forwarded = { "x-forwarded-for": "203.0.113.9" }
  expect(await fields(forwarded)).toEqual([
    "\"address\";q=6000;w=60",
    expect.stringMatching(/^"address";r=5999;t=\d+$/)
  ])
  expect(await fields({})).toEqual([null, null])
})
