/* base/energy.h lists where the energy of an attempt comes from.
 *
 * The numbers travel on the wire and never change (docs/protocol.md, section 11). */
#ifndef BOURSE_BASE_ENERGY_H
#define BOURSE_BASE_ENERGY_H

enum energy_source {
    ENERGY_UNSTATED = 0, /* the result does not say */
    ENERGY_MEASURED = 1, /* counters of the machine or of the device */
    /* Estimates: the power of the slots at full load, for as long as they were busy. */
    ENERGY_BY_OWNER = 2,     /* the power is the owner's word */
    ENERGY_BY_CATALOGUE = 3, /* the power is the catalogue's */
    ENERGY_SOURCES
};

#endif
