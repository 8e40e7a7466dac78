/** A service with content only, and the requests of a publisher. */
import { resourceTable } from "../../http/resource-table.ts"
import { type Answered, type Harness, type Sending, startService } from "./harness.ts"

/** Largest content of this service. */
export const bytesMax = 1024 * 1024

export const plain = (body: string, options: Sending = {}): Sending => ({
  type: "text/plain",
  body,
  ...options
})

/** The URI of `rel="edit"`. */
export const editOf = (answered: Answered): string =>
  /<([^>]+)>; rel="edit"/.exec(answered.header("link"))?.[1] ?? ""

export const locationOf = (answered: Answered): string => answered.header("location")

export interface Contents extends Harness {
  /** A1. */
  readonly publish: (body: string, options?: Sending) => Promise<Answered>
}

export const startContents = async (): Promise<Contents> => {
  const service = await startService(resourceTable, { contentBytesMax: bytesMax })
  const publish: Contents["publish"] = (body, options = {}) =>
    service.send("POST", "/content", plain(body, options))
  return { ...service, publish }
}
