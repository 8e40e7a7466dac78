/**
 * A NATS server for the suites of the cluster: `NATS_SERVER`, or one on the path that is new
 * enough, or Debian's newest, unpacked beside the modules without touching the system.
 */
import { spawnSync } from "node:child_process"
import { existsSync, mkdirSync, readdirSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { inRoot, run } from "../deploy/prepare.mjs"

/** Atomic batches came with it. */
const versionMin = [2, 12]
const suite = "unstable"
const keyring = "/usr/share/keyrings/debian-archive-keyring.gpg"
const folder = inRoot("node_modules/.cache/nats-server")

const output = (command, ...args) => spawnSync(command, args, { encoding: "utf8" }).stdout ?? ""

const isNewEnough = (binary) => {
  const [, major, minor] = /v(\d+)\.(\d+)\./.exec(output(binary, "--version")) ?? []
  if (major === undefined) return false
  return Number(major) > versionMin[0] ||
    (Number(major) === versionMin[0] && Number(minor) >= versionMin[1])
}

/** The mirror that this machine takes its packages from. */
const mirror = () =>
  output("apt-get", "indextargets", "--format", "$(REPO_URI) $(ORIGIN)", "Created-By: Packages")
    .split("\n")
    .map((line) => line.split(" "))
    .find(([uri = "", origin]) => origin === "Debian" && !uri.includes("security"))?.[0]

/** Downloads the package of the newest suite, with lists and caches of its own, and unpacks it. */
const unpack = () => {
  if (mirror() === undefined && process.getuid?.() === 0) run("apt-get", ["-qq", "update"])
  const uri = mirror()
  if (uri === undefined || !existsSync(keyring)) return false
  for (const name of ["lists/partial", "archives/partial", "unpacked"]) {
    mkdirSync(join(folder, name), { recursive: true })
  }
  const sources = join(folder, "sources.list")
  writeFileSync(sources, `deb [signed-by=${keyring}] ${uri} ${suite} main\n`)
  const options = [
    `Dir::Etc::sourcelist=${sources}`,
    "Dir::Etc::sourceparts=-",
    `Dir::State::lists=${join(folder, "lists")}`,
    `Dir::Cache=${folder}`,
    "APT::Sandbox::User=root",
    "Acquire::Languages=none"
  ].flatMap((option) => ["-o", option])
  const apt = (...args) => {
    const { status } = spawnSync("apt-get", [...options, "-qq", ...args], {
      cwd: folder,
      stdio: ["ignore", "inherit", "inherit"]
    })
    return status === 0
  }
  if (!apt("update") || !apt("download", "nats-server")) return false
  const found = readdirSync(folder).find((name) => name.endsWith(".deb"))
  return found !== undefined &&
    run("dpkg-deb", ["-x", join(folder, found), join(folder, "unpacked")])
}

const unpacked = join(folder, "unpacked/usr/sbin/nats-server")

const named = process.env.NATS_SERVER
const candidates = named === undefined ? ["nats-server", unpacked] : [named]

/** Unpacks a server where none is named and none is there; undefined without one to use. */
const installServer = () => {
  const installed = () => candidates.find(isNewEnough)
  return installed() ?? (named === undefined && unpack() ? installed() : undefined)
}

/** Makes `NATS_SERVER` name a server, or says what to do. */
export const haveNatsServer = () => {
  const found = installServer()
  if (found === undefined) {
    const version = versionMin.join(".")
    const message =
      `No nats-server of version ${version} or later: install one, or set NATS_SERVER.`
    process.stderr.write(`${message}\n`)
    return false
  }
  process.env.NATS_SERVER = found.includes("/") ? found : output("which", found).trim()
  return true
}

if (process.argv[1] === fileURLToPath(import.meta.url)) installServer()
