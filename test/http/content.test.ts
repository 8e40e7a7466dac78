/** Content by its protocol (protocol §1.1): A1, A3, A4, PUT, DELETE, by status, header and body. */
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { resourceTable } from "../../http/resource-table.ts"
import { bytesMax, type Contents, editOf, locationOf, plain,
  startContents } from "./content-harness.ts"
import { adminToken, startService } from "./harness.ts"

const admin = `admin:${adminToken}`
let service: Contents

beforeAll(async () => {
  service = await startContents()
})
afterAll(() => service.close())

const send: Contents["send"] = (...request) => service.send(...request)
const publish: Contents["publish"] = (...parameters) => service.publish(...parameters)

describe("A1: publishing", () => {
  it("answers 202, Location and the edit URI, and stores the bytes unchanged", async () => {
    const published = await publish("The keys are under the mat.")
    expect(published.status).toBe(202)
    expect(locationOf(published)).toMatch(/\/content\/[A-Za-z0-9_-]{22}$/)
    expect(editOf(published)).toMatch(/\/content\/[A-Za-z0-9_-]{22}~[A-Za-z0-9_-]{43}$/)
    expect(published.header("cache-control")).toBe("no-store")
    expect(published.xml.attributes).toMatchObject({ length: "27", type: "text/plain" })
    const answer = await send("GET", locationOf(published))
    expect([answer.status, answer.text]).toEqual([200, "The keys are under the mat."])
    expect(answer.header("content-type")).toBe("text/plain")
  })

  it("accepts any type, none, and no bytes at all", async () => {
    const odd = await publish("{}", { type: "application/vnd.odd+json; v=1" })
    expect((await send("GET", locationOf(odd))).header("content-type"))
      .toBe("application/vnd.odd+json; v=1")
    const form = await publish("a=b", { type: "application/x-www-form-urlencoded" })
    expect((await send("GET", locationOf(form))).text).toBe("a=b")
    const nothing = await send("POST", "/content", { headers: { "Content-Type": "text/plain" } })
    expect(nothing.status).toBe(202)
    const answer = await send("GET", locationOf(nothing))
    expect([answer.status, answer.text, answer.header("content-length")]).toEqual([200, "", "0"])
  })

  it("refuses a type or disposition that is none, and a body that is too large", async () => {
    expect((await publish("x", { type: "nonsense" })).status).toBe(400)
    for (const type of ["", " "]) {
      const empty = await publish("x", { type })
      expect([empty.status, empty.child("detail")])
        .toEqual([415, expect.stringContaining("Content-Type is empty: name the type")])
    }
    const disposition = { headers: { "Content-Disposition": "=;" } }
    expect((await publish("x", disposition)).status).toBe(400)
    const large = await publish("x".repeat(bytesMax + 1))
    expect(large.status).toBe(413)
    expect(large.child("detail")).toContain(String(bytesMax))
  })

  it("is allowed to everybody, but a wrong token is not anonymous", async () => {
    const wrong = await service.send("POST", "/content", plain("x", { basic: "admin:wrong" }))
    expect([wrong.status, wrong.headers.get("location")]).toEqual([401, null])
    expect(wrong.header("www-authenticate")).toContain("Basic realm=\"restante\"")
  })

  it("may be restricted to accounts", async () => {
    const strict = await startService(resourceTable, { publish: "accounts" })
    try {
      expect((await strict.send("POST", "/content", plain("x"))).status).toBe(401)
      const allowed = await strict.send("POST", "/content", plain("x", { basic: admin }))
      expect(allowed.status).toBe(202)
    } finally {
      await strict.close()
    }
  })
})

describe("A3: fetching", () => {
  it("never lets stored HTML or SVG act", async () => {
    for (const type of ["text/html", "image/svg+xml"]) {
      const answer = await send("GET", locationOf(await publish("<script>1</script>", { type })))
      expect(answer.header("content-security-policy")).toBe(
        "sandbox; default-src 'none'; frame-ancestors 'none'"
      )
      expect(answer.header("x-content-type-options")).toBe("nosniff")
      expect(answer.header("referrer-policy")).toBe("no-referrer")
      expect(answer.header("content-disposition")).toBe("attachment")
    }
    const named = { headers: { "Content-Disposition": "attachment; filename=\"a.txt\"" } }
    const answer = await send("GET", locationOf(await publish("x", named)))
    expect(answer.header("content-disposition")).toBe("attachment; filename=\"a.txt\"")
    const safe = await send("GET", locationOf(await publish("x")))
    expect(safe.header("content-disposition")).toBe("inline")
  })

  it("has browsers save a PDF, whatever its publisher wants", async () => {
    for (const type of ["application/pdf", "text/pdf", "application/x-pdf; a=b"]) {
      for (
        const [wanted, sent] of [
          ["inline", "attachment"],
          ["inline; filename=\"a.pdf\"", "attachment; filename=\"a.pdf\""]
        ] as const
      ) {
        const options = { type, headers: { "Content-Disposition": wanted } }
        const answer = await send("GET", locationOf(await publish("%PDF-1.7", options)))
        expect(answer.header("content-disposition")).toBe(sent)
      }
    }
  })

  it("names one type, of which a browser cannot take a later one", async () => {
    for (
      const [type, sent] of [
        ["text/plain; x=1, application/pdf", "text/plain"],
        ["image/png;,text/html", "image/png"],
        ["text/plain; x=\"a,b\"", "text/plain"]
      ] as const
    ) {
      const answer = await send("GET", locationOf(await publish("x", { type })))
      expect(answer.header("content-type")).toBe(sent)
    }
    const fragment = "<notification><item><description>x</description><url/>" +
      "<content type=\"text/plain,application/pdf\">x</content></item></notification>"
    const opened = await send("POST", "/mailboxes", { basic: admin, headers: { Slug: "types" } })
    const href = opened.header("location")
    expect((await send("POST", href, { body: fragment })).status).toBe(202)
    const listed = await send("GET", href, { basic: admin })
    const uri = /<url>([^<]+)<\/url>/.exec(listed.text)?.[1] ?? ""
    const answer = await send("GET", uri)
    expect([answer.status, answer.header("content-type"), answer.header("content-disposition")])
      .toEqual([200, "application/octet-stream", "attachment"])
  })

  it("gives each body a date of its own, and none later than now", async () => {
    const published = await publish("first")
    const href = locationOf(published)
    for (const body of ["second", "third"]) {
      const since = (await send("GET", href)).header("last-modified")
      expect((await send("PUT", editOf(published), plain(body))).status).toBe(204)
      const changed = await send("GET", href, { headers: { "If-Modified-Since": since } })
      expect([changed.status, changed.text]).toEqual([200, body])
      expect(Date.parse(changed.header("last-modified"))).toBeLessThanOrEqual(Date.now())
    }
  })

  it("honors validators", async () => {
    const href = locationOf(await publish("some text"))
    const answer = await send("GET", href)
    expect(answer.etag).toMatch(/^"[A-Za-z0-9_-]{22}"$/)
    const modified = answer.header("last-modified")
    const same = await send("GET", href, { headers: { "If-None-Match": answer.etag } })
    expect([same.status, same.text, same.etag]).toEqual([304, "", answer.etag])
    expect((await send("GET", href, { headers: { "If-Modified-Since": modified } })).status)
      .toBe(304)
    expect((await send("GET", href, { headers: { "If-Match": "\"other\"" } })).status).toBe(412)
    const head = await send("HEAD", href)
    expect([head.status, head.text, head.header("content-length")]).toEqual([200, "", "9"])
  })

  it("serves byte ranges", async () => {
    const href = locationOf(await publish("0123456789"))
    const range = async (field: string, more: Record<string, string> = {}) => {
      const { headers, status, text } = await send("GET", href, {
        headers: { Range: field, ...more }
      })
      return [status, text, headers.get("content-range")]
    }
    expect(await range("bytes=2-4")).toEqual([206, "234", "bytes 2-4/10"])
    expect(await range("bytes=7-")).toEqual([206, "789", "bytes 7-9/10"])
    expect(await range("bytes=-2")).toEqual([206, "89", "bytes 8-9/10"])
    expect(await range("bytes=5-99")).toEqual([206, "56789", "bytes 5-9/10"])
    expect(await range("bytes=4-2")).toEqual([200, "0123456789", null])
    expect(await range("lines=1-2")).toEqual([200, "0123456789", null])
    expect((await range("bytes=10-")).slice(0, 1)).toEqual([416])
    expect((await range("bytes=10-"))[2]).toBe("bytes */10")
    const { etag } = await send("GET", href)
    expect(await range("bytes=0-1", { "If-Range": etag })).toEqual([206, "01", "bytes 0-1/10"])
    expect(await range("bytes=0-1", { "If-Range": "\"old\"" }))
      .toEqual([200, "0123456789", null])
  })

  it("is 404 for unknown content, with any secret", async () => {
    for (const path of ["/content/AAAAAAAAAAAAAAAAAAAAAA", "/content/a~b", "/content/%20"]) {
      expect((await send("GET", path)).status).toBe(404)
    }
    const wrong = `${locationOf(await publish("x"))}~wrong`
    expect((await send("GET", wrong)).status).toBe(404)
    expect((await send("PUT", wrong, plain("y"))).status).toBe(404)
    expect((await send("DELETE", wrong)).status).toBe(404)
  })
})

describe("message passwords", () => {
  const secret = "correct-horse-battery"
  const withPassword = { headers: { "Message-Password": secret } }

  it("opens with the header, or with Basic and any user name", async () => {
    const href = locationOf(await publish("secret text", withPassword))
    expect((await send("GET", href, withPassword)).text).toBe("secret text")
    expect((await send("GET", href, { basic: `anybody:${secret}` })).text).toBe("secret text")
    const answer = await send("GET", href, withPassword)
    expect(answer.header("cache-control")).toContain("private")
  })

  it("answers 401 without a hint of size or type", async () => {
    const href = locationOf(await publish("secret text", { ...withPassword, type: "text/x-odd" }))
    for (const options of [{}, { headers: { "Message-Password": "wrong" } }]) {
      const refused = await send("GET", href, options)
      expect(refused.status).toBe(401)
      expect(refused.header("www-authenticate")).toMatch(/^Basic realm="message"/)
      expect(refused.header("cache-control")).toBe("no-store")
      expect(refused.text).not.toContain("secret text")
      expect(refused.text).not.toContain("x-odd")
      for (const name of ["etag", "last-modified", "content-range"]) {
        expect(refused.headers.get(name)).toBeNull()
      }
    }
    expect((await send("HEAD", href)).status).toBe(401)
    expect((await send("POST", href, { body: "<receipt status=\"received\"/>" })).status).toBe(401)
  })

  it("is generated by the service on request", async () => {
    const asked = await publish("x", { headers: { "Message-Password": "generate" } })
    const created = asked.header("message-password")
    expect(created).toMatch(/^[A-Za-z0-9_-]{43}$/)
    const href = locationOf(asked)
    expect((await send("GET", href)).status).toBe(401)
    expect((await send("GET", href, { headers: { "Message-Password": created } })).status).toBe(200)
    expect((await publish("x", withPassword)).headers.get("message-password")).toBeNull()
  })

  it("must be long enough and visible, and may be long", async () => {
    for (const bad of ["short", "has a space inside it", "x".repeat(257)]) {
      const refused = await publish("x", { headers: { "Message-Password": bad } })
      expect([refused.status, refused.text.includes(bad)]).toEqual([422, false])
    }
    const long = { headers: { "Message-Password": "Aa1!".repeat(64) } }
    const href = locationOf(await publish("x", long))
    expect((await send("GET", href, long)).text).toBe("x")
    for (const other of ["aa1!".repeat(64), "Aa1!".repeat(63)]) {
      const refused = await send("GET", href, { headers: { "Message-Password": other } })
      expect(refused.status).toBe(401)
    }
  })

  it("allow ten wrong attempts a minute from one address", async () => {
    const strict = await startService(resourceTable)
    try {
      const href = locationOf(await strict.send("POST", "/content", plain("x", withPassword)))
      const wrong = { headers: { "Message-Password": "wrong-wrong-wrong" } }
      for (let tries = 0; tries < 10; tries++) {
        expect((await strict.send("GET", href, wrong)).status).toBe(401)
      }
      const refused = await strict.send("GET", href, wrong)
      expect(refused.status).toBe(429)
      expect(Number(refused.header("retry-after"))).toBeGreaterThan(0)
      expect((await strict.send("GET", href, withPassword)).status).toBe(429)
      const open = locationOf(await strict.send("POST", "/content", plain("y")))
      expect((await strict.send("GET", open)).status).toBe(200)
    } finally {
      await strict.close()
    }
  })
})

describe("the edit URI", () => {
  it("overwrites the whole content, and the URI remains", async () => {
    const published = await publish("first")
    const href = locationOf(published)
    const before = await send("GET", href)
    const put = await send("PUT", editOf(published), plain("<b>second</b>", { type: "text/html" }))
    expect(put.status).toBe(204)
    const after = await send("GET", href)
    expect([after.text, after.header("content-type")]).toEqual(["<b>second</b>", "text/html"])
    expect(after.etag).toBe(put.etag)
    expect(after.etag).not.toBe(before.etag)
  })

  it("honors If-Match and If-None-Match", async () => {
    const published = await publish("first")
    const edit = editOf(published)
    const { etag } = await send("GET", locationOf(published))
    const conditional = (headers: Record<string, string>) => plain("second", { headers })
    expect((await send("PUT", edit, conditional({ "If-Match": "\"x\"" }))).status).toBe(412)
    expect((await send("PUT", edit, conditional({ "If-None-Match": "*" }))).status).toBe(412)
    expect((await send("GET", edit)).text).toBe("first")
    expect((await send("PUT", edit, conditional({ "If-Match": etag }))).status).toBe(204)
    expect((await send("DELETE", edit, { headers: { "If-Match": etag } })).status).toBe(412)
    expect((await send("DELETE", edit, { headers: { "If-Match": "*" } })).status).toBe(204)
  })

  it("removes: 204, then 410 for everything", async () => {
    const published = await publish("x")
    const href = locationOf(published)
    const edit = editOf(published)
    expect((await send("DELETE", edit)).status).toBe(204)
    for (const method of ["GET", "HEAD", "DELETE"]) {
      expect((await send(method, edit)).status).toBe(410)
    }
    expect((await send("GET", href)).status).toBe(410)
    expect((await send("PUT", edit, plain("y"))).status).toBe(410)
    expect((await send("POST", href, { body: "<receipt status=\"received\"/>" })).status).toBe(410)
    expect((await send("GET", `${edit}/receipts`)).status).toBe(410)
  })

  it("may be replaced by the owner's account, and by no other", async () => {
    const href = locationOf(await publish("mine", { basic: admin }))
    expect((await send("PUT", href, plain("yours"))).status).toBe(401)
    expect((await send("DELETE", href)).status).toBe(401)
    expect((await send("PUT", href, plain("still mine", { basic: admin }))).status).toBe(204)
    expect((await send("GET", href)).text).toBe("still mine")
    expect((await send("DELETE", href, { basic: admin })).status).toBe(204)
    const anybodys = locationOf(await publish("nobody's"))
    // An admin removes any content, but reads and replaces none that is not its own.
    expect((await send("PUT", anybodys, { basic: admin, body: "x" })).status).toBe(403)
    expect((await send("GET", `${anybodys}/receipts`, { basic: admin })).status).toBe(403)
    expect((await send("DELETE", anybodys, { basic: admin })).status).toBe(204)
    expect((await send("GET", anybodys)).status).toBe(410)
  })
})
