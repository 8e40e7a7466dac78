/** A service with accounts that may change customers, and readers of listings. */
import { expect } from "vitest"
import { childrenOf } from "../../http/formats/xml/index.ts"
import { resourceTable } from "../../http/resource-table.ts"
import { adminToken, type Answered, type Harness, type Sending, startService } from "./harness.ts"

export const admin = `admin:${adminToken}`

export interface Area extends Harness {
  /** Credentials of an account with the role customers, and of an account without roles. */
  readonly clerk: string
  readonly nobody: string
  readonly put: (id: string, body: string, options?: Sending) => Promise<Answered>
  /** The last segment of each href, over all pages. */
  readonly idsOf: (path: string) => Promise<ReadonlyArray<string>>
}

export const nextOf = ({ headers }: Answered): string | undefined =>
  /<([^>]+)>; rel="next"/.exec(headers.get("link") ?? "")?.[1]

export const idsIn = ({ xml }: Answered): ReadonlyArray<string> =>
  childrenOf(xml).map(({ attributes }) => /[^/]+$/.exec(attributes["href"] ?? "")?.[0] ?? "")

export const startArea = async (): Promise<Area> => {
  const service = await startService(resourceTable)
  const account = async (name: string, role: string): Promise<string> => {
    const body = `<account><name>${name}</name>${role}</account>`
    const created = await service.send("POST", "/accounts", { basic: admin, body })
    expect(created.status).toBe(201)
    return `${name}:${/<token[^>]*>([^<]+)<\/token>/.exec(created.text)?.[1] ?? ""}`
  }
  const clerk = await account("clerk", "<role>customers</role>")
  const nobody = await account("nobody", "")
  return {
    ...service,
    clerk,
    nobody,
    put: (id, body, options) =>
      service.send("PUT", `/customers/${id}`, { basic: clerk, body, ...options }),
    idsOf: async (path) => {
      const ids: Array<string> = []
      for (let next: string | undefined = path; next !== undefined;) {
        const page: Answered = await service.send("GET", next)
        expect(page.status, page.text).toBe(200)
        ids.push(...idsIn(page))
        next = nextOf(page)
      }
      return ids
    }
  }
}

export const customer = (name: string, age: number | string, more = ""): string =>
  `<customer><name>${name}</name><age>${age}</age>${more}</customer>`
