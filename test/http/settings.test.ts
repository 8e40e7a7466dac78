/** `/settings`: the settings of the node that answers, for admins. */
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { resourceTable } from "../../http/resource-table.ts"
import { adminToken, type Harness, startService } from "./harness.ts"

const basic = `admin:${adminToken}`

let service: Harness

beforeAll(async () => {
  service = await startService(resourceTable)
})
afterAll(() => service.close())

describe("the settings of a node", () => {
  it("show each value and its source, and of a secret that there is one", async () => {
    const shown = await service.send("GET", "/settings", { basic, accept: "application/json" })
    expect([shown.status, shown.header("cache-control")]).toEqual([200, "no-store"])
    expect(shown.json).toMatchObject({
      href: `${service.base}/settings`,
      setting: [
        { name: "port", variable: "PORT", source: "environment PORT", value: "0" },
        { name: "baseUrl", variable: "BASE_URL", source: "unset" },
        {
          name: "adminToken",
          variable: "ADMIN_TOKEN",
          source: "environment ADMIN_TOKEN",
          secret: "true"
        },
        { name: "quotas.accountBytesMax", variable: "ACCOUNT_BYTES_MAX", value: "10GiB" }
      ]
    })
    expect(shown.text).not.toContain(adminToken)
    const page = await service.send("GET", "/settings", { basic, accept: "text/html" })
    // A value of a line of its own has no empty line after it.
    expect(page.text).not.toContain("</span><br>")
    for (const part of ["environment PORT", "not shown", "none"]) {
      expect(page.text).toContain(part)
    }
  })

  it("are for admins alone", async () => {
    expect((await service.send("GET", "/settings")).status).toBe(401)
    const body = "<account><name>alice</name></account>"
    const made = await service.send("POST", "/accounts", { basic, body })
    const alice = `alice:${made.child("token")}`
    expect((await service.send("GET", "/settings", { basic: alice })).status).toBe(403)
  })
})
