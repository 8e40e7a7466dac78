/** Nodes of a cluster, for the lines that measure one. */
import { randomBytes } from "node:crypto"
import { writeFileSync } from "node:fs"
import { join } from "node:path"
import type { Bench } from "../line.ts"
import type { Running } from "../process.ts"

export const pause = (ms: number): Promise<void> =>
  new Promise((resolve) => setTimeout(resolve, ms))

/** What the nodes of one cluster share: the servers, the key, the token of the admin. */
export interface SharedSettings {
  readonly urls: ReadonlyArray<string>
  /** The number of streams for actors. */
  readonly buckets: number
  readonly secretKeyFile: string
  readonly token: string
}

const bucketsByDefault = 4

export const shareSettings = (
  bench: Bench,
  name: string,
  urls: ReadonlyArray<string>,
  buckets = bucketsByDefault
): SharedSettings => {
  const secretKeyFile = join(bench.folder(`${name}-shared`), "secret-key")
  writeFileSync(secretKeyFile, `${randomBytes(32).toString("base64")}\n`, { mode: 0o600 })
  return { urls, buckets, secretKeyFile, token: randomBytes(32).toString("base64url") }
}

/** Starts a node of the cluster on an empty folder. */
export const nodeOn = (
  bench: Bench,
  { buckets, secretKeyFile, token, urls }: SharedSettings,
  name: string
): Promise<Running> =>
  bench.serve(bench.folder(name), {
    token,
    env: {
      NATS_URL: urls.join(","),
      CLUSTER_BUCKETS: String(buckets),
      NODE_ID: name,
      SECRET_KEY_FILE: secretKeyFile,
      OUTBOUND_ALLOW: "127.0.0.0/8"
    }
  })
