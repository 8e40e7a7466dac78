/** CONTENT_BASE_URL of the built service: its origin serves content, and nothing else. */
import { afterAll, beforeAll, expect, test } from "vitest"
import { asAdmin, expectStatus, linkOf, pathOf, send } from "./client.ts"
import { cleanUp, publicUrl, type Service, start } from "./process.ts"
import { sendRaw } from "./raw.ts"

const contentBaseUrl = "http://content.test"
const { authorization } = asAdmin

let service: Service
beforeAll(async () => {
  service = await start({ env: { CONTENT_BASE_URL: contentBaseUrl } })
})
afterAll(cleanUp)

/** The answer at the origin of content to the admin's browser. */
const atContent = (method: string, path: string): Promise<string> =>
  sendRaw(service.port, [
    `${method} ${path} HTTP/1.1\r\nHost: content.test\r\nAuthorization: ${authorization}\r\n` +
    "Accept: text/html\r\nSec-Fetch-Site: none\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
  ], 60_000)

const publish = (base: string) =>
  send(base, "/content", {
    method: "POST",
    headers: { "content-type": "text/html" },
    body: "<script>steal()</script>"
  })

test("the origin of content serves content, and nothing else", async () => {
  const published = expectStatus(await publish(service.url), 202)
  const href = published.headers.get("location") ?? ""
  expect(href).toMatch(/^http:\/\/content\.test\/content\/[\w-]{22}$/)
  const path = new URL(href).pathname
  const read = await atContent("GET", path)
  expect(read).toMatch(/^HTTP\/1\.1 200 [^]*content-security-policy: sandbox;[^]*steal\(\)/i)

  const elsewhere = await send(service.url, path, { headers: asAdmin })
  expect([elsewhere.status, elsewhere.headers.get("location"), elsewhere.text])
    .toEqual([307, href, ""])

  const { text } = await send(service.url, "/openapi.json")
  const { paths }: { paths: Record<string, Record<string, unknown>> } = JSON.parse(text)
  const isServed = (pattern: string, method: string) =>
    pattern === "/content/{content}" && ["get", "head", "post", "options"].includes(method)
  for (const [pattern, operations] of Object.entries(paths)) {
    const own = pattern.replaceAll(/\{[^}]+\}/g, "aaaaaaaaaaaaaaaaaaaaaa")
    for (const method of ["get", "post", "put", "delete"]) {
      if (operations[method] === undefined || isServed(pattern, method)) continue
      const answer = await atContent(method.toUpperCase(), own)
      expect(answer, `${method} ${pattern}`).toMatch(/^HTTP\/1\.1 (404|405) /)
      expect(answer).toMatch(/content-type: text\/plain/i)
      expect(answer).not.toMatch(/set-cookie|steal|<html/i)
    }
  }

  const edit = linkOf(published, "edit")
  expectStatus(await send(service.url, edit, { method: "DELETE" }), 204)
  expect(await atContent("GET", path)).toMatch(/^HTTP\/1\.1 410 /)
})

test("without the setting everything has the origin of the service", async () => {
  const alone = await start()
  const published = expectStatus(await publish(alone.url), 202)
  const href = published.headers.get("location") ?? ""
  expect(href.startsWith(`${publicUrl}/content/`)).toBe(true)
  const read = expectStatus(await send(alone.url, pathOf(href)), 200)
  expect(read.text).toContain("steal()")
  const listing = await send(alone.url, "/content?anonymous=true", { headers: asAdmin })
  expect(listing.text).toContain(`href="${href}"`)
  expect(listing.text).not.toContain("edit=")
  expectStatus(await send(alone.url, pathOf(href), { method: "DELETE", headers: asAdmin }), 204)
})
