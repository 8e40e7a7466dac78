/**
 * The file of the key that encrypts stored secrets: SECRET_KEY_FILE, or `secret-key` in the data
 * folder. No archive has it, unless the operator asks for it.
 */
import { Effect, Schema } from "effect"
import { existsSync, readFileSync, type Stats, statSync, writeFileSync } from "node:fs"
import { dirname, join } from "node:path"
import { type Keyring, newKey, parseKeys } from "../../actors/index.ts"
import { flushFolder, makeFolders } from "../../runtime/embedded/index.ts"
import { reasonOf } from "../command-failure.ts"
import { secretKeyFileBytesMax } from "../limits.ts"
import { mayMakeSecretKey, type NodeSettings } from "../settings/index.ts"

/** The key of stored secrets is missing, is not that of the store, or others can read it. */
export class SecretKeyUnusable
  extends Schema.TaggedError<SecretKeyUnusable>()("SecretKeyUnusable", { message: Schema.String })
{}

type KeySettings = Pick<NodeSettings, "dataDir" | "natsUrl" | "secretKeyFile">

const fileName = "secret-key"

/** The path of the key file. */
export const keyFileOf = ({ dataDir, secretKeyFile }: KeySettings): string =>
  secretKeyFile ?? join(dataDir, fileName)

/** How an operator makes a key file. */
const making = (file: string): string => `(umask 077; openssl rand -base64 32 > ${file})`

/**
 * Why others than its owner could read the key; undefined if they cannot. A group may read a file
 * of another owner, since a mounted file (a Secret of Kubernetes) has no other way to its node.
 */
const openness = ({ mode, uid }: Stats): string | undefined => {
  // Windows has no such permissions.
  if (process.getuid === undefined) return undefined
  const ofOthers = uid === process.getuid() ? 0o077 : 0o007
  return (mode & ofOthers) === 0 ? undefined : (mode & 0o777).toString(8)
}

/** Why the existing file cannot be used; undefined if it can. */
const fileProblem = (file: string): string | undefined => {
  const stats = statSync(file)
  if (!stats.isFile()) return `${file} is not a file: SECRET_KEY_FILE must name a file with a key`
  if (stats.size > secretKeyFileBytesMax) return `${file} is too large to be a file of keys`
  const mode = openness(stats)
  return mode === undefined
    ? undefined
    : `${file} has mode ${mode}, and others could read the key of stored secrets: chmod 600 ${file}`
}

/** The text of the file. Throws SecretKeyUnusable. */
const textOf = (file: string): string => {
  const problem = fileProblem(file)
  if (problem !== undefined) throw new SecretKeyUnusable({ message: problem })
  return readFileSync(file, "utf8")
}

/** The keys of the file. Throws SecretKeyUnusable. */
const readFile = (file: string): Keyring => {
  const keyring = parseKeys(textOf(file))
  if (typeof keyring !== "string") return keyring
  throw new SecretKeyUnusable({
    message: `${file} cannot be used as the key of stored secrets: ${keyring}. ` +
      `Restore the file, or make a key for a new store: ${making(file)}`
  })
}

const comment = "# The key of this service's stored secrets: keep a copy, apart from the backups."

/** Writes a new key file for its owner alone. It is durable before anything is encrypted. */
const makeFile = (file: string, text = `${comment}\n${newKey()}\n`): void => {
  makeFolders(dirname(file), 0o700)
  const options = { flag: "wx", mode: 0o600, flush: true } as const
  writeFileSync(file, text, options)
  flushFolder(dirname(file))
}

const unset = "SECRET_KEY_FILE is not set, and the nodes of a cluster share one key of stored " +
  `secrets: make it once, by ${making("secret-key")}, and set SECRET_KEY_FILE to a copy of the ` +
  "file on every node"

/** What an operator does about a missing key file. */
const missing = ({ dataDir, natsUrl }: KeySettings, file: string): string => {
  const store = natsUrl === undefined ? `the store in ${dataDir}` : "the cluster"
  return `${file} does not exist, and has the key of stored secrets of ${store}: put the file ` +
    `back from its copy. Only a new store gets a new key: ${making(file)}`
}

const attempt = <A>(file: string, work: () => A): Effect.Effect<A, SecretKeyUnusable> =>
  Effect.try({
    try: work,
    catch: (error) =>
      error instanceof SecretKeyUnusable ? error : new SecretKeyUnusable({
        message: `${file} cannot be used as the key of stored secrets, ${reasonOf(error)}: ` +
          "give a DATA_DIR or SECRET_KEY_FILE that this user may read and write"
      })
  })

/** A cluster needs a file that its operator made. Throws SecretKeyUnusable. */
const checkNamed = (settings: KeySettings): void => {
  if (settings.secretKeyFile !== undefined || mayMakeSecretKey(settings)) return
  throw new SecretKeyUnusable({ message: unset })
}

/** The keys of these settings. Fails for a missing file, or a cluster without SECRET_KEY_FILE. */
export const keyringOf = (settings: KeySettings): Effect.Effect<Keyring, SecretKeyUnusable> => {
  const file = keyFileOf(settings)
  return attempt(file, () => {
    checkNamed(settings)
    if (existsSync(file)) return readFile(file)
    throw new SecretKeyUnusable({ message: missing(settings, file) })
  })
}

/**
 * The keys of a node that starts. It makes a missing file in the data folder: for a new embedded
 * store, or with servers of NATS on this machine, which are for development.
 */
export const keyringOfNode = (
  settings: NodeSettings
): Effect.Effect<Keyring, SecretKeyUnusable> => {
  const { dataDir, natsUrl, secretKeyFile } = settings
  const file = keyFileOf(settings)
  const hasStore = natsUrl === undefined && existsSync(join(dataDir, "store"))
  const isMade = !existsSync(file) && !hasStore && secretKeyFile === undefined &&
    mayMakeSecretKey(settings)
  return isMade
    ? newKeyringOf(settings, undefined)
    : keyringOf(settings)
}

/** The keys of these settings; undefined if the file does not exist yet. */
export const existingKeyringOf = (
  settings: KeySettings
): Effect.Effect<Keyring | undefined, SecretKeyUnusable> => {
  const file = keyFileOf(settings)
  return attempt(file, () => {
    checkNamed(settings)
    return existsSync(file) ? readFile(file) : undefined
  })
}

/** Makes the file that does not exist yet, with the keys of an archive or with a new one. */
export const newKeyringOf = (
  settings: KeySettings,
  text: string | undefined
): Effect.Effect<Keyring, SecretKeyUnusable> => {
  const file = keyFileOf(settings)
  return attempt(file, () => {
    makeFile(file, text)
    return readFile(file)
  })
}

/** The text of the file of keys, for an archive that is to have it. */
export const keyTextOf = (settings: KeySettings): Effect.Effect<string, SecretKeyUnusable> => {
  const file = keyFileOf(settings)
  return Effect.andThen(keyringOf(settings), attempt(file, () => textOf(file)))
}

/** The keys in the text of a file; undefined if there is none, or it cannot be used. */
export const keyringIn = (text: string | undefined): Keyring | undefined => {
  const keyring = text === undefined ? undefined : parseKeys(text)
  return typeof keyring === "string" ? undefined : keyring
}
