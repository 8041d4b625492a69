"""The four topologies of Ehrenstein 2020 (later Theodolite), for studies of scalability."""
