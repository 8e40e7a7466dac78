/** METRICS_LISTEN: a listener of its own for Prometheus. */
import { afterAll, expect, it } from "vitest"
import { basic } from "../e2e/client.ts"
import { adminToken, cleanUp, start } from "../e2e/process.ts"
import { freePorts } from "../runtime/nats/servers.ts"

afterAll(cleanUp)

/** Protocol §7, as texts of their own: what the service defines could be wrong. */
const policies = {
  "content-security-policy": "sandbox; default-src 'none'; frame-ancestors 'none'",
  "cross-origin-resource-policy": "same-origin",
  "referrer-policy": "no-referrer",
  "x-content-type-options": "nosniff"
}

it("serves /metrics alone, without an account", async () => {
  const [port = 0] = await freePorts(1)
  const service = await start({ env: { METRICS_LISTEN: `127.0.0.1:${port}` } })
  const at = `http://127.0.0.1:${port}`
  const scraped = await fetch(`${at}/metrics`, { headers: { "x-forwarded-for": "203.0.113.9" } })
  expect([scraped.status, scraped.headers.get("content-type")])
    .toEqual([200, "text/plain; version=0.0.4; charset=utf-8"])
  expect(await scraped.text()).toContain("restante_http_requests_total")
  expect((await fetch(`${at}/metrics`, { method: "POST" })).status).toBe(405)
  const authorization = basic("admin", adminToken)
  for (const path of ["/", "/cluster", "/metrics/x"]) {
    expect([path, (await fetch(at + path, { headers: { authorization } })).status])
      .toEqual([path, 404])
  }
  for (const [path, method] of [["/metrics", "GET"], ["/metrics", "POST"], ["/", "GET"]] as const) {
    const { headers } = await fetch(at + path, { method })
    expect([path, method, Object.fromEntries(headers)])
      .toEqual([path, method, expect.objectContaining(policies)])
  }
  expect((await service.stop()).code).toBe(0)
  await expect(fetch(`${at}/metrics`)).rejects.toThrow()
})

it("ends the start where the address is taken", async () => {
  const [port = 0] = await freePorts(1)
  const env = { METRICS_LISTEN: String(port) }
  await start({ env })
  await expect(start({ env })).rejects
    .toThrow(`METRICS_LISTEN: cannot listen on 127.0.0.1:${port}`)
})
