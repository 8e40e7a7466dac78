/** The twin of a device: the settings that it should have, and those that it has. */
import { become, defineActor, refuse, Schema, stay } from "@restante/runtime"

const Settings = Schema.Record(
  Schema.String,
  Schema.Union([Schema.String, Schema.Number, Schema.Boolean])
)
const Versioned = Schema.Struct({ version: Schema.Int, settings: Settings })

interface Twin {
  readonly desired: typeof Versioned.Type
  readonly reported: typeof Versioned.Type
}

/** What readers see of a twin. */
const viewOf = ({ desired, reported }: Twin) => ({
  desired,
  reported,
  isInSync: desired.version === reported.version
})

/** One twin for each device. Every message replies with the twin, or is refused. */
export const deviceTwin = defineActor("device-twin", {
  state: { Twin: { desired: Versioned, reported: Versioned, sequence: Schema.Int } },
  messages: {
    // An operator changes the settings of the version that it has read.
    Desire: { settings: Settings, ifVersion: Schema.Int },
    // The device counts its reports, and says which desired version it has applied.
    Report: { settings: Settings, version: Schema.Int, sequence: Schema.Int },
    Read: {}
  },
  initial: {
    _tag: "Twin",
    desired: { version: 0, settings: {} },
    reported: { version: 0, settings: {} },
    sequence: 0
  },
  table: {
    Twin: {
      Desire: (twin, { ifVersion, settings }) => {
        const { version } = twin.desired
        if (ifVersion !== version) return refuse("Changed", `the twin has version ${version}`)
        const next = { ...twin, desired: { version: version + 1, settings } }
        return become(next).reply(viewOf(next))
      },
      Report: (twin, { sequence, settings, version }) => {
        // A report that comes twice, or after a later one.
        if (sequence <= twin.sequence) return stay().reply(viewOf(twin))
        if (version > twin.desired.version) return refuse("Unknown", `nobody desired ${version}`)
        if (version < twin.reported.version) return refuse("Older", "the device has gone back")
        const next = { ...twin, reported: { version, settings }, sequence }
        return become(next).reply(viewOf(next))
      },
      Read: (twin) => stay().reply(viewOf(twin))
    }
  }
})
