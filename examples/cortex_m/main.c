/*
 * Computed-torque control on a microcontroller: one arm, single precision, no memory allocation.
 *
 * The arm is a PUMA 560. This command generates its code:
 * `chasles export puma560 -f inverse_dynamics --dtype float --own-sine -o puma`.
 * On an Arduino, put puma560.h and puma560.c next to the sketch, call `control_step` from a timer,
 * and replace the arrays below by reading your sensors and writing to your motors.
 */
#include "puma560.h"

#define JOINTS 6U

/* Measured state, planned motion and motor torques, in rad, rad/s, rad/s2 and N m. */
volatile float measured_q[JOINTS];
volatile float measured_qd[JOINTS];
volatile float planned_q[JOINTS];
volatile float planned_qd[JOINTS];
volatile float planned_qdd[JOINTS];
volatile float motor_torque[JOINTS];

void control_step(void);

/* tau = M (qdd + Kd (error of qd) + Kp (error of q)) + h, called once per millisecond. */
void control_step(void)
{
    const float stiffness = 100.0F; /* 1/s2: errors decay in about 0.3 s */
    const float damping = 20.0F;    /* 1/s: critical damping */
    float q[JOINTS];
    float qd[JOINTS];
    float qdd[JOINTS];
    float tau[JOINTS];
    for (size_t k = 0U; k < JOINTS; ++k) {
        q[k] = measured_q[k];
        qd[k] = measured_qd[k];
        qdd[k] = planned_qdd[k] + (damping * (planned_qd[k] - qd[k]))
            + (stiffness * (planned_q[k] - q[k]));
    }
    puma560_inverse_dynamics(q, qd, qdd, tau);
    for (size_t k = 0U; k < JOINTS; ++k) {
        motor_torque[k] = tau[k];
    }
}

int main(void)
{
    for (;;) {
        control_step(); /* stands for a call by a timer */
    }
}
